import { classIn, flags as bits, rcodes, typeNumbers } from '../../dns/rules/wire/codes';
import { isWithin, MalformedDns, readName, type WireName } from '../../dns/rules/wire/name';
import { recordText, type WireMessage, type WireRecord } from '../../dns/rules/wire/reader';
import type { DnsRecord } from '../../dns/ports';
import type { Question } from './exchange';

/** NS names of a cut, and the addresses the same message gave for those inside the asked server's own zone. */
export type Referral = { zone: WireName; ttl: number; hosts: { name: WireName; addresses: string[] }[] };

/** What a server said, as far as it may be believed. */
export type Reply =
  /** `alias`: name the records end at; asked for next when it is not the name itself and `records` does not hold the type. */
  | { kind: 'answer' | 'nodata' | 'nxdomain'; records: DnsRecord[]; alias: WireName; negativeTtl: number; authoritative: true }
  | { kind: 'referral'; referral: Referral }
  | { kind: 'lame' | 'servfail' | 'refused' };

/** NS names read of one referral (contract dns.md §4.5). */
const hostsMax = 13;
const hopsMax = 8;

/** Reads an answer to `question` of a server that is responsible for `zone`: nothing outside that zone is believed. */
export function readReply(message: WireMessage, question: Question, zone: WireName): Reply {
  try {
    if (message.rcode === rcodes.REFUSED || message.rcode === rcodes.NOTAUTH) return { kind: 'refused' };
    if (message.rcode !== rcodes.NOERROR && message.rcode !== rcodes.NXDOMAIN) return { kind: 'servfail' };
    const referral = referralOf(message, question, zone);
    if (referral) return { kind: 'referral', referral };
    return (message.flags & bits.aa) === 0 ? { kind: 'lame' } : finalReply(message, question, zone);
  } catch (error) {
    if (error instanceof MalformedDns) return { kind: 'servfail' };
    throw error;
  }
}

function finalReply(message: WireMessage, question: Question, zone: WireName): Reply {
  const { records, alias, complete } = chainOf(message, question, zone);
  const negativeTtl = negativeTtlOf(message);
  const kind = complete ? 'answer' : message.rcode === rcodes.NXDOMAIN ? 'nxdomain' : 'nodata';
  return { kind, records: records.map((record) => recordText(message, record)), alias, negativeTtl, authoritative: true };
}

/** The records of the answer that lead from the question on: CNAMEs inside the zone, then the type asked for. */
function chainOf(message: WireMessage, question: Question, zone: WireName): { records: WireRecord[]; alias: WireName; complete: boolean } {
  const records: WireRecord[] = [];
  let name = question.name;
  for (let hops = 0; hops <= hopsMax && isWithin(name, zone); hops++) {
    const here = message.answer.filter((record) => record.class === classIn && record.name === name);
    const wanted = here.filter(({ type }) => type === question.type);
    if (wanted.length > 0) return { records: [...records, ...wanted], alias: name, complete: true };
    const cname = here.find(({ type }) => type === typeNumbers.CNAME);
    if (!cname) break;
    records.push(cname);
    name = nameOf(message, cname);
  }
  return { records, alias: name, complete: false };
}

/** A delegation deeper than the asked zone, at or above the name, in a message that says nothing of its own. Some servers set AA on it. */
function referralOf(message: WireMessage, question: Question, zone: WireName): Referral | null {
  if (message.rcode !== rcodes.NOERROR || message.answer.length > 0 || message.authority.some(({ type }) => type === typeNumbers.SOA)) return null;
  const servers = message.authority.filter(({ type, class: recordClass }) => type === typeNumbers.NS && recordClass === classIn);
  const cut = servers.find(({ name }) => name !== zone && isWithin(name, zone) && isWithin(question.name, name))?.name;
  if (cut === undefined) return null;
  const ofCut = servers.filter(({ name }) => name === cut);
  const names = [...new Set(ofCut.map((record) => nameOf(message, record)))].slice(0, hostsMax);
  const hosts = names.map((name) => ({ name, addresses: isWithin(name, zone) ? glueOf(message, name) : [] }));
  return { zone: cut, ttl: Math.min(...ofCut.map(({ ttl }) => ttl)), hosts };
}

function glueOf(message: WireMessage, host: WireName): string[] {
  const glue = message.additional.filter(({ name, type, class: recordClass }) => name === host && recordClass === classIn && (type === typeNumbers.A || type === typeNumbers.AAAA));
  return glue.map((record) => recordText(message, record).value);
}

function nameOf(message: WireMessage, record: WireRecord): WireName {
  return readName(message.octets.subarray(0, record.rdataAt + record.rdataLength), record.rdataAt).name;
}

/** RFC 2308 §5: the lesser of the SOA's own ttl and its last field; 0 without a SOA. */
function negativeTtlOf(message: WireMessage): number {
  const soa = message.authority.find(({ type }) => type === typeNumbers.SOA);
  if (!soa || soa.rdataLength < 22) return 0;
  return Math.min(soa.ttl, message.octets.readUInt32BE(soa.rdataAt + soa.rdataLength - 4));
}


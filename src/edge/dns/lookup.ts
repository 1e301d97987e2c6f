import { rcodes, typeNumbers } from '../../dns/rules/wire/codes';
import { isWithin, parentOf, textName, wildcardOf, type WireName } from '../../dns/rules/wire/name';
import type { LoadedZone, StoredSet, ZoneNode } from './zone-store';

export type AnswerRecord = { owner: WireName; set: StoredSet; ttl: number };

export type Answer = {
  rcode: number;
  authoritative: boolean;
  answer: AnswerRecord[];
  authority: AnswerRecord[];
  additional: AnswerRecord[];
  /** Answers that rate limiting counts as equal share it: negatives per zone, synthesised ones per wildcard. */
  limitKey: string;
};

/** CNAME records one answer follows. */
const hopsMax = 8;
const negativeTtl = 300;

/** RFC 8482 §4.2. */
const anyAnswer: StoredSet = {
  type: typeNumbers.HINFO, typeName: 'HINFO', ttl: 3600, rdatas: [[Buffer.concat([Buffer.from([7]), Buffer.from('RFC8482'), Buffer.from([0])])]],
};

/** What was found on the way to an answer, at which name: told to whoever wants to see it. */
export type Step = 'delegation' | 'name' | 'wildcard' | 'cname' | 'answer' | 'nodata' | 'nxdomain';

/** What a zone says to a question at or below its apex (RFC 1034 §4.3.2, RFC 4592, RFC 2308). */
export function lookUp(zone: LoadedZone, question: WireName, type: number, note?: (step: Step, name: WireName) => void): Answer {
  const answer: AnswerRecord[] = [];
  let name = question;
  let limitKey = `${zone.domain}/${textName(question)}/${type}`;
  for (let hops = 0; ; hops++) {
    const cut = cutAt(zone, name, type);
    if (cut) note?.('delegation', cut.name);
    if (cut) return referral(zone, cut, answer);
    const found = findNode(zone, name);
    if (!found.node) note?.('nxdomain', name);
    if (!found.node) return negative(zone, answer, rcodes.NXDOMAIN);
    note?.(found.wildcard ? 'wildcard' : 'name', found.wildcard ?? name);
    if (found.wildcard && hops === 0) limitKey = `${zone.domain}/${textName(found.wildcard)}/${type}`;
    const { sets } = found.node;
    const set = type === typeNumbers.ANY && sets.size > 0 ? anyAnswer : sets.get(type);
    if (set) note?.('answer', name);
    if (set) return { ...positive([...answer, record(name, set)]), limitKey };
    const alias = sets.get(typeNumbers.CNAME);
    const target = alias?.rdatas[0]?.[0];
    if (!alias || typeof target !== 'string') note?.('nodata', name);
    if (!alias || typeof target !== 'string') return negative(zone, answer, rcodes.NOERROR);
    note?.('cname', target);
    answer.push(record(name, alias));
    if (!isWithin(target, zone.apex) || hops + 1 >= hopsMax) return { ...positive(answer), limitKey };
    name = target;
  }
}

/** The highest delegation at or above a name. DS of the delegated name itself is the parent's (RFC 4035 §3.1.4.1). */
function cutAt(zone: LoadedZone, name: WireName, type: number): { name: WireName; servers: StoredSet } | null {
  let highest: { name: WireName; servers: StoredSet } | null = null;
  for (let rest = name; rest !== zone.apex; rest = parentOf(rest)) {
    const servers = zone.set(rest, typeNumbers.NS);
    if (servers && !(type === typeNumbers.DS && rest === name)) highest = { name: rest, servers };
  }
  return highest;
}

/** The node of a name or, when the name does not exist, the wildcard at its closest encloser. */
function findNode(zone: LoadedZone, name: WireName): { node: ZoneNode | undefined; wildcard: WireName | null } {
  const exact = zone.nodes.get(name);
  if (exact) return { node: exact, wildcard: null };
  let encloser = parentOf(name);
  while (!zone.nodes.has(encloser)) encloser = parentOf(encloser);
  const wildcard = wildcardOf(encloser);
  return { node: zone.nodes.get(wildcard), wildcard };
}

function positive(answer: AnswerRecord[]): Omit<Answer, 'limitKey'> {
  return { rcode: rcodes.NOERROR, authoritative: true, answer, authority: [], additional: [] };
}

/** NODATA or NXDOMAIN; after a CNAME the rcode is that of the last name (RFC 6604 §3). */
function negative(zone: LoadedZone, answer: AnswerRecord[], rcode: number): Answer {
  const soa = zone.set(zone.apex, typeNumbers.SOA);
  const authority = soa ? [{ owner: zone.apex, set: soa, ttl: Math.min(soa.ttl, negativeTtl) }] : [];
  return { rcode, authoritative: true, answer, authority, additional: [], limitKey: `${zone.domain}//negative` };
}

/** Not authoritative, unless a CNAME of our own led here: AA tells of the first name (RFC 1035 §4.1.1). */
function referral(zone: LoadedZone, cut: { name: WireName; servers: StoredSet }, answer: AnswerRecord[]): Answer {
  const hosts = cut.servers.rdatas.flatMap((rdata) => rdata.filter((piece) => typeof piece === 'string'));
  const glue = hosts.filter((host) => isWithin(host, zone.apex)).flatMap((host) => addressesOf(zone, host));
  const ds = zone.set(cut.name, typeNumbers.DS);
  return {
    rcode: rcodes.NOERROR, authoritative: answer.length > 0, answer,
    authority: [record(cut.name, cut.servers), ...(ds ? [record(cut.name, ds)] : [])],
    additional: glue, limitKey: `${zone.domain}/${textName(cut.name)}/cut`,
  };
}

function addressesOf(zone: LoadedZone, host: WireName): AnswerRecord[] {
  return [zone.set(host, typeNumbers.A), zone.set(host, typeNumbers.AAAA)].flatMap((set) => (set ? [record(host, set)] : []));
}

function record(owner: WireName, set: StoredSet): AnswerRecord {
  return { owner, set, ttl: set.ttl };
}

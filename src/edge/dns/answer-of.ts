import type { DnsRecord, ZoneAnswer, ZoneChangeSet } from '../../dns/ports';
import { rcodes, typeName, typeNumbers, type TypeName } from '../../dns/rules/wire/codes';
import { textName, wireName, type WireName } from '../../dns/rules/wire/name';
import { decodeRdata, flatRdata } from '../../dns/rules/wire/rdata';
import { lookUp, type AnswerRecord, type Step } from './lookup';
import { ZoneStore } from './zone-store';

/** What this server would answer if the zone were loaded, and how it comes to it. Errors: a type it does not know. */
export function answerOf(changes: ZoneChangeSet, name: string, type: string): ZoneAnswer {
  const store = new ZoneStore();
  store.apply(changes);
  const zone = store.get(changes.domain);
  const number = Object.entries(typeNumbers).find(([known]) => known === type)?.[1];
  if (!zone || number === undefined) throw new Error(`Nothing can be answered for ${changes.domain} ${type}.`);
  const trace: ZoneAnswer['trace'] = [];
  const found = lookUp(zone, wireName(name), number, (step, at) => trace.push({ name: textName(at), step, detail: told(step, at, type) }));
  const rcode = Object.entries(rcodes).find(([, code]) => code === found.rcode)?.[0] ?? String(found.rcode);
  return { rcode, aa: found.authoritative, answer: found.answer.flatMap(shown), authority: found.authority.flatMap(shown), trace };
}

function told(step: Step, at: WireName, type: string): string {
  const name = textName(at);
  switch (step) {
    case 'delegation': return `${name} is delegated: its name servers are asked next.`;
    case 'name': return `${name} exists.`;
    case 'wildcard': return `${name} answers for names that do not exist.`;
    case 'cname': return `A CNAME leads to ${name}.`;
    case 'answer': return `${name} has ${type}.`;
    case 'nodata': return `${name} has no ${type}.`;
    case 'nxdomain': return `${name} does not exist.`;
  }
}

function shown({ owner, set, ttl }: AnswerRecord): DnsRecord[] {
  return set.rdatas.map((rdata) => {
    const octets = flatRdata(rdata);
    return { name: textName(owner), type: typeName(set.type), ttl, value: set.typeName === hinfo ? 'RFC8482' : decodeRdata(set.type, octets, 0, octets.length) };
  });
}

const hinfo: TypeName = 'HINFO';

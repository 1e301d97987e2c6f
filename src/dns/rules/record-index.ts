import { namesAbove, relativeName } from './names';
import { grouped, rrsetValue, type RecordType, type ZoneRecord } from './rrset';

/** The active records of a zone by name, for questions about what stands where. Built once per write: linear in records. */
export class RecordIndex {
  private readonly byName: ReadonlyMap<string, ZoneRecord[]>;
  /** Names at and below every name that exists, empty non-terminals included. */
  private readonly within = new Map<string, string[]>([['@', []]]);
  private readonly bySet: ReadonlyMap<string, ZoneRecord[]>;
  private readonly byRdata: ReadonlyMap<string, ZoneRecord[]>;

  constructor(readonly domain: string, readonly records: readonly ZoneRecord[]) {
    this.byName = grouped(records, ({ name }) => name);
    this.bySet = grouped(records, ({ name, type }) => `${type} ${name}`);
    this.byRdata = grouped(records, rdataKey);
    for (const name of this.byName.keys()) {
      for (const above of [name, ...namesAbove(name)]) {
        const there = this.within.get(above);
        if (there) there.push(name);
        else this.within.set(above, [name]);
      }
    }
  }

  at(name: string): readonly ZoneRecord[] {
    return this.byName.get(name) ?? [];
  }

  set(name: string, type: RecordType): readonly ZoneRecord[] {
    return this.bySet.get(`${type} ${name}`) ?? [];
  }

  /** Records with the name, type and rdata of this one, itself included. */
  alike(record: ZoneRecord): readonly ZoneRecord[] {
    return this.byRdata.get(rdataKey(record)) ?? [];
  }

  /** Records at and below a name that is not the apex. */
  below(name: string): readonly ZoneRecord[] {
    return (this.within.get(name) ?? []).flatMap((inner) => this.at(inner));
  }

  /** Records that answer for a name: its own, else those of the wildcard at its closest encloser (RFC 4592). */
  answering(name: string): readonly ZoneRecord[] {
    if (this.within.has(name)) return this.at(name);
    const encloser = namesAbove(name).find((above) => this.within.has(above));
    return this.at(encloser === undefined ? '*' : `*.${encloser}`);
  }

  /** Name of the highest delegation at or above a name, with its NS records; null when the zone itself answers. */
  cutOf(name: string): { name: string; servers: readonly ZoneRecord[] } | null {
    for (const above of [name, ...namesAbove(name)].reverse()) {
      const servers = above === '@' ? [] : this.set(above, 'NS');
      if (servers.length > 0) return { name: above, servers };
    }
    return null;
  }

  /** Whether a record is the address of a name server that one of the delegation's NS records names. */
  isGlue(record: Pick<ZoneRecord, 'type' | 'name'>): boolean {
    if (record.type !== 'A' && record.type !== 'AAAA') return false;
    const cut = this.cutOf(record.name);
    return cut !== null && cut.servers.some((server) => relativeName(server.value, this.domain) === record.name);
  }
}

function rdataKey(record: ZoneRecord): string {
  return `${record.type} ${record.name} ${rrsetValue(record)}`;
}

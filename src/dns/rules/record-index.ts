import { namesAbove, relativeName } from './names';
import type { ZoneRecord } from './rrset';

/** The active records of a zone by name, for questions about what stands where. Built once per write: linear in records. */
export class RecordIndex {
  private readonly byName = new Map<string, ZoneRecord[]>();
  private readonly enclosers = new Set<string>(['@']);

  constructor(readonly domain: string, readonly records: readonly ZoneRecord[]) {
    for (const record of records) {
      const there = this.byName.get(record.name);
      if (there) there.push(record);
      else {
        this.byName.set(record.name, [record]);
        for (const name of [record.name, ...namesAbove(record.name)]) this.enclosers.add(name);
      }
    }
  }

  at(name: string): readonly ZoneRecord[] {
    return this.byName.get(name) ?? [];
  }

  names(): Iterable<string> {
    return this.byName.keys();
  }

  /** Records that answer for a name: its own, else those of the wildcard at its closest encloser (RFC 4592). */
  answering(name: string): readonly ZoneRecord[] {
    if (this.enclosers.has(name)) return this.at(name);
    const encloser = namesAbove(name).find((above) => this.enclosers.has(above)) ?? '@';
    return this.at(encloser === '@' ? '*' : `*.${encloser}`);
  }

  /** Name of the highest delegation at or above a name, with its NS records; null when the zone itself answers. */
  cutOf(name: string): { name: string; servers: readonly ZoneRecord[] } | null {
    for (const above of [name, ...namesAbove(name)].reverse()) {
      const servers = above === '@' ? [] : this.at(above).filter((record) => record.type === 'NS');
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

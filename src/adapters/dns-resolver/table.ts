import type { Delegation, DnsRecord, DnsResolver, QueryType, Resolution, ServerAnswer } from '../../dns/ports';

/** What a test's DNS holds. A name without an entry does not exist; an entry may be an outcome instead of records. */
export type TableEntry = readonly DnsRecord[] | 'servfail' | 'refused' | 'timeout';

const hopsMax = 8;
const nothing = { queries: 0, durationMs: 0, zone: null, server: null } as const;

/** A resolver over two tables: answers by name and type, delegations by name. Names are lower case without final dot. */
export class TableResolver implements DnsResolver {
  private readonly answers = new Map<string, TableEntry>();
  private readonly delegations = new Map<string, Delegation>();

  /** `name type` is answered with this from now on. */
  set(name: string, type: QueryType, entry: TableEntry): void {
    this.answers.set(`${name} ${type}`, entry);
  }

  setDelegation(name: string, delegation: Delegation): void {
    this.delegations.set(name, delegation);
  }

  resolve(name: string, type: QueryType): Promise<Resolution> {
    const records: DnsRecord[] = [];
    let at = name.toLowerCase().replace(/\.$/, '');
    for (let hops = 0; hops <= hopsMax; hops++) {
      const entry = this.answers.get(`${at} ${type}`) ?? [];
      if (typeof entry === 'string') return Promise.resolve({ ...nothing, outcome: entry, conclusive: false, canonicalName: at, records, ttl: 0 });
      records.push(...entry);
      if (entry.length > 0) return Promise.resolve(this.conclusive('answer', at, records));
      const alias = this.answers.get(`${at} CNAME`);
      const [target] = typeof alias === 'object' && type !== 'CNAME' ? alias : [];
      if (!target) return Promise.resolve(this.conclusive(this.exists(at) ? 'nodata' : 'nxdomain', at, records));
      records.push(target);
      at = target.value;
    }
    return Promise.resolve({ ...nothing, outcome: 'servfail', conclusive: false, canonicalName: at, records, ttl: 0 });
  }

  delegation(name: string): Promise<Delegation> {
    const parentZone = name.split('.').slice(1).join('.') || '.';
    return Promise.resolve(this.delegations.get(name) ?? { outcome: 'nxdomain', conclusive: true, ttl: 300, parentZone, parentServers: [], consistent: true, nameservers: [] });
  }

  async askServer(_server: { address: string; port?: number }, name: string, type: QueryType): Promise<ServerAnswer> {
    const { outcome, records, durationMs, conclusive } = await this.resolve(name, type);
    return { outcome, records, durationMs, authoritative: conclusive };
  }

  private conclusive(outcome: 'answer' | 'nodata' | 'nxdomain', canonicalName: string, records: DnsRecord[]): Resolution {
    const ttl = records.length > 0 ? Math.min(...records.map((record) => record.ttl)) : 300;
    return { ...nothing, outcome, conclusive: true, canonicalName, records, ttl };
  }

  /** A name exists when it or anything below it has an entry. */
  private exists(name: string): boolean {
    return [...this.answers.keys()].some((key) => key.startsWith(`${name} `) || (key.split(' ')[0] ?? '').endsWith(`.${name}`));
  }
}

import type { ApplyOutcome, ZoneChangeSet, ZoneFeed } from '../../src/dns/ports';
import type { RRset, RrType } from '../../src/dns/rules/rrset';

/** A feed a test plays by hand. */
export class HandFeed implements ZoneFeed {
  private apply: ((changes: ZoneChangeSet) => ApplyOutcome) | null = null;

  constructor(private readonly first: readonly ZoneChangeSet[] = []) {}

  start(apply: (changes: ZoneChangeSet) => ApplyOutcome): Promise<void> {
    this.apply = apply;
    for (const changes of this.first) apply(changes);
    return Promise.resolve();
  }

  stop(): Promise<void> {
    this.apply = null;
    return Promise.resolve();
  }

  push(changes: ZoneChangeSet): ApplyOutcome {
    if (!this.apply) throw new Error('the feed is not started');
    return this.apply(changes);
  }
}

/** A whole zone from lines `name type ttl value`, `@` the apex; SOA and two NS are added unless given. */
export function fullZone(domain: string, lines: readonly string[], more: Partial<ZoneChangeSet> = {}): ZoneChangeSet {
  const version = more.version ?? 1;
  const sets = rrsets(domain, lines);
  const apex = domain === '.' ? '.' : domain;
  const has = (type: RrType): boolean => sets.some((set) => set.name === apex && set.type === type);
  if (!has('SOA')) sets.push({ name: apex, type: 'SOA', ttl: 3600, values: [`ns1.platform.test hostmaster.platform.test ${2026112100 + version} 7200 3600 1209600 300`] });
  if (!has('NS')) sets.push({ name: apex, type: 'NS', ttl: 3600, values: ['ns1.platform.test', 'ns2.platform.test'] });
  return { zoneId: null, domain, version, fromVersion: null, serial: 2026112100 + version, kind: 'full', replace: sets, remove: [], ...more };
}

/** RRsets from lines `name type ttl value`. */
export function rrsets(domain: string, lines: readonly string[]): RRset[] {
  const sets = new Map<string, RRset>();
  for (const line of lines) {
    const [, name = '', type = '', ttl = '', value = ''] = /^(\S+) (\S+) (\d+) (.*)$/s.exec(line) ?? [];
    const known = types.find((one) => one === type);
    if (!known) throw new Error(`not a line of a zone: ${line}`);
    const absolute = name === '@' ? domain : domain === '.' ? name : `${name}.${domain}`;
    const set = sets.get(`${absolute} ${type}`) ?? { name: absolute, type: known, ttl: Number(ttl), values: [] };
    set.values.push(value);
    sets.set(`${absolute} ${type}`, set);
  }
  return [...sets.values()];
}

const types: readonly RrType[] = ['A', 'AAAA', 'CNAME', 'MX', 'TXT', 'NS', 'CAA', 'SOA', 'DS'];

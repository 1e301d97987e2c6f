import type { Origin } from './origins';
import type { RecordType, ZoneRecord } from './rrset';

type Pool = Pick<ZoneRecord, 'proxied'> & Origin;

/** Records while a plan is made: by id, and by name and type, so that a step costs what it changes. */
export class PlanState<R extends ZoneRecord> {
  private readonly byId = new Map<string, R>();
  private readonly sets = new Map<string, Map<string, R>>();

  constructor(records: readonly R[]) {
    for (const record of records) this.put(record);
  }

  get(id: string): R | undefined {
    return this.byId.get(id);
  }

  all(): R[] {
    return [...this.byId.values()];
  }

  put(record: R): void {
    const earlier = this.byId.get(record.id);
    if (earlier) this.set(earlier.name, earlier.type).delete(record.id);
    this.byId.set(record.id, record);
    this.set(record.name, record.type).set(record.id, record);
  }

  /** What a record coming to this name takes: the ttl of its set, the settings of its pool; its own where there is none. */
  sharedBy(at: R): Pick<ZoneRecord, 'ttl'> & Pool {
    const mate = this.mates(at).next().value ?? at;
    return { ...poolOf(mate), ttl: this.siblings(at).next().value?.ttl ?? at.ttl };
  }

  /** The record's ttl becomes its set's and, with `pool`, its settings its pool's. */
  spread(record: R, { pool }: { pool: boolean }): void {
    const first = this.siblings(record).next().value;
    if (first && first.ttl !== record.ttl) for (const peer of [...this.siblings(record)]) this.put({ ...peer, ttl: record.ttl });
    if (pool) for (const peer of [...this.mates(record)]) if (!isSamePool(peer, record)) this.put({ ...peer, ...poolOf(record) });
  }

  private *siblings(at: R): Generator<R, undefined> {
    for (const peer of this.set(at.name, at.type).values()) if (peer.id !== at.id) yield peer;
  }

  private *mates(at: R): Generator<R, undefined> {
    if (!isAddress(at.type)) return;
    for (const type of ['A', 'AAAA'] as const) for (const peer of this.set(at.name, type).values()) if (peer.id !== at.id) yield peer;
  }

  private set(name: string, type: RecordType): Map<string, R> {
    const key = `${type} ${name}`;
    const there = this.sets.get(key) ?? new Map<string, R>();
    this.sets.set(key, there);
    return there;
  }
}

export function isAddress(type: RecordType): boolean {
  return type === 'A' || type === 'AAAA';
}

/** Whether two records of one name could be served by one group of origins. */
export function isSamePool(a: Pool, b: Pool): boolean {
  return a.proxied === b.proxied && a.originProtocol === b.originProtocol && a.originPort === b.originPort
    && a.originPath === b.originPath && a.originHostHeader === b.originHostHeader;
}

function poolOf({ proxied, originProtocol, originPort, originPath, originHostHeader }: Pool): Pool {
  return { proxied, originProtocol, originPort, originPath, originHostHeader };
}

import type { Issue } from '../../core/errors';
import { canonicalRecordName } from './names';
import { canonicalOrigin, noOrigin, type Origin } from './origins';
import { rrsetValue, type RecordType, type ZoneRecord } from './rrset';
import { canonicalRecord, ttlDefault } from './values';

/** Fields of a record that a write may give; absent: kept, inherited or defaulted. null clears. */
export type RecordFields = {
  name?: string | undefined; value?: string | undefined; ttl?: number | null | undefined; priority?: number | null | undefined; proxied?: boolean | undefined;
  originProtocol?: 'http' | 'https' | null | undefined; originPort?: number | null | undefined; originPath?: string | null | undefined;
  originHostHeader?: string | null | undefined; comment?: string | null | undefined;
};
export type Creation<R> = { type: RecordType; fields: RecordFields; make: (record: Omit<ZoneRecord, 'id'> & { comment: string | null }) => R };
export type PlannedRecord = ZoneRecord & { comment: string | null };

/** All writes of one transaction, in the order deletes, updates, restores, creates. */
export type Writes<R extends PlannedRecord> = {
  deletes: readonly R[];
  updates: readonly { record: R; fields: RecordFields }[];
  restores: readonly R[];
  creates: readonly Creation<R>[];
};

export type Plan<R extends PlannedRecord> = {
  /** The zone's records after the write. */
  after: R[];
  created: R[];
  /** Changed by name: updated and restored ones that differ from before. */
  updated: R[];
  /** Others whose ttl, proxied or origin followed. */
  affected: R[];
  deleted: R[];
  /** What stood there before, by id. */
  before: ReadonlyMap<string, R>;
  /** Faults visible from the request and the zone's name; paths begin with `updates.0.` or `creates.0.`. */
  issues: Issue[];
};

/**
 * The state a write leads to (contract dns.md §4.3). An RRset shares its ttl, and all A and AAAA records of a name share
 * proxied and origin (one pool): an explicit value becomes everybody's, an absent one is taken from them.
 */
export function planWrites<R extends PlannedRecord>(domain: string, before: readonly R[], writes: Writes<R>): Plan<R> {
  const issues: Issue[] = [];
  const gone = new Set(writes.deletes.map(({ id }) => id));
  const state = new WorkingState(before.filter(({ id }) => !gone.has(id)));
  const named = new Set<string>();
  const touch = (record: R, fields: RecordFields, keepsPool: boolean): void => {
    state.put(record);
    named.add(record.id);
    spread(state, record, fields, keepsPool);
  };
  writes.updates.forEach(({ record, fields }, i) => {
    const current = state.get(record.id) ?? record;
    const next = completed(domain, { ...current }, fields, { path: `updates.${i}`, issues, peers: peersOf(state, current, fields, domain) });
    touch(next, fields, false);
  });
  for (const record of writes.restores) {
    const peers = peersAt(state, record);
    touch({ ...record, ...inherited(peers, record), ttl: peers.set[0]?.ttl ?? record.ttl }, {}, true);
  }
  const created = writes.creates.map((creation, i) => {
    const blank = creation.make({
      type: creation.type, name: '@', value: '', ttl: ttlDefault, priority: null, proxied: false, originProtocol: null, originPort: null,
      originPath: null, originHostHeader: null, comment: null,
    });
    const next = completed(domain, blank, creation.fields, { path: `creates.${i}`, issues, peers: peersOf(state, blank, creation.fields, domain) });
    touch(next, { ttl: creation.fields.ttl }, true);
    return next.id;
  });
  return outcome({ before, state, named, created: new Set(created), deletes: writes.deletes, issues });
}

/** Records by id and by name while a plan is made. */
class WorkingState<R extends PlannedRecord> {
  private readonly byId = new Map<string, R>();
  private readonly idsAt = new Map<string, Set<string>>();

  constructor(records: readonly R[]) {
    for (const record of records) this.put(record);
  }

  put(record: R): void {
    const earlier = this.byId.get(record.id);
    if (earlier && earlier.name !== record.name) this.idsAt.get(earlier.name)?.delete(record.id);
    this.byId.set(record.id, record);
    this.idsAt.set(record.name, (this.idsAt.get(record.name) ?? new Set()).add(record.id));
  }

  get(id: string): R | undefined {
    return this.byId.get(id);
  }

  at(name: string): R[] {
    return [...(this.idsAt.get(name) ?? [])].flatMap((id) => this.byId.get(id) ?? []);
  }

  all(): R[] {
    return [...this.byId.values()];
  }
}

/** Ports we listen on ourselves are refused where they are reached: by the gateway, which knows them. */
const platformPorts: ReadonlySet<number> = new Set();

type Peers<R> = { set: R[]; pool: R[] };
type Completing<R> = { path: string; issues: Issue[]; peers: Peers<R> };

/** The record with the fields applied and made canonical; faults go to `issues`. */
function completed<R extends PlannedRecord>(domain: string, record: R, fields: RecordFields, { path, issues, peers }: Completing<R>): R {
  const fault = (field: string, message: string): void => void issues.push({ path: `${path}.${field}`, message });
  const name = fields.name === undefined ? { value: record.name } : canonicalRecordName(fields.name, domain);
  if (name.fault !== undefined) fault('name', name.fault);
  const base = { ...record, name: name.value ?? record.name };
  const pool = peers.pool[0];
  const proxied = fields.proxied ?? pool?.proxied ?? (base.name === record.name ? record.proxied : false);
  const priority = fields.priority === undefined ? record.priority : fields.priority;
  const parsed = canonicalRecord({ type: record.type, name: base.name, value: fields.value ?? record.value, priority, proxied }, domain);
  for (const { path: field, message } of name.fault === undefined ? (parsed.faults ?? []) : []) fault(field, message);
  const origin = canonicalOrigin(givenOrigin({ ...base, ...(pool ? pickOrigin(pool) : {}) }, fields, proxied), proxied, platformPorts);
  for (const { path: field, message } of origin.faults ?? []) fault(field, message);
  return {
    ...base, ...(origin.faults ? noOrigin : origin.origin), proxied,
    ...(parsed.faults ? {} : { value: parsed.value, priority: parsed.priority }),
    ttl: fields.ttl ?? (fields.ttl === null ? ttlDefault : peers.set[0]?.ttl ?? record.ttl),
    comment: fields.comment === undefined ? record.comment : fields.comment,
  };
}

const originFields = ['originProtocol', 'originPort', 'originPath', 'originHostHeader'] as const;

/** What is given over what stands there: on a record that is no longer proxied nothing stands. */
function givenOrigin(record: Origin, fields: RecordFields, proxied: boolean): Origin {
  const base = proxied ? record : noOrigin;
  return {
    originProtocol: fields.originProtocol === undefined ? base.originProtocol : fields.originProtocol,
    originPort: fields.originPort === undefined ? base.originPort : fields.originPort,
    originPath: fields.originPath === undefined ? base.originPath : fields.originPath,
    originHostHeader: fields.originHostHeader === undefined ? base.originHostHeader : fields.originHostHeader,
  };
}

function pickOrigin({ originProtocol, originPort, originPath, originHostHeader }: Origin): Origin {
  return { originProtocol, originPort, originPath, originHostHeader };
}

function inherited<R extends PlannedRecord>({ pool }: Peers<R>, record: R): Origin & { proxied: boolean } {
  const [peer] = pool;
  return peer ? { proxied: peer.proxied, ...pickOrigin(peer) } : { proxied: record.proxied, ...pickOrigin(record) };
}

function isAddress(type: RecordType): boolean {
  return type === 'A' || type === 'AAAA';
}

function peersAt<R extends PlannedRecord>(state: WorkingState<R>, at: Pick<ZoneRecord, 'id' | 'name' | 'type'>): Peers<R> {
  const others = state.at(at.name).filter(({ id }) => id !== at.id);
  return { set: others.filter(({ type }) => type === at.type), pool: isAddress(at.type) ? others.filter(({ type }) => isAddress(type)) : [] };
}

/** Who shares with the record where it will stand. */
function peersOf<R extends PlannedRecord>(state: WorkingState<R>, record: R, fields: RecordFields, domain: string): Peers<R> {
  const name = fields.name === undefined ? record.name : canonicalRecordName(fields.name, domain).value;
  return name === undefined ? { set: [], pool: [] } : peersAt(state, { id: record.id, type: record.type, name });
}

/** What was given explicitly becomes everybody's. A creation does not change a pool: one that differs is `mixed_proxy`. */
function spread<R extends PlannedRecord>(state: WorkingState<R>, record: R, fields: RecordFields, keepsPool: boolean): void {
  const { set, pool } = peersAt(state, record);
  if (fields.ttl !== undefined) for (const peer of set) state.put({ ...(state.get(peer.id) ?? peer), ttl: record.ttl });
  if (keepsPool || (fields.proxied === undefined && originFields.every((field) => fields[field] === undefined))) return;
  for (const peer of pool) state.put({ ...(state.get(peer.id) ?? peer), proxied: record.proxied, ...pickOrigin(record) });
}

function outcome<R extends PlannedRecord>({ before, state, named, created, deletes, issues }: {
  before: readonly R[]; state: WorkingState<R>; named: ReadonlySet<string>; created: ReadonlySet<string>; deletes: readonly R[]; issues: Issue[];
}): Plan<R> {
  const known = new Map(before.map((record) => [record.id, record]));
  const after = state.all();
  const changed = after.filter((record) => {
    const earlier = known.get(record.id);
    return !created.has(record.id) && (!earlier || !isSame(earlier, record));
  });
  return {
    after, issues, before: known, deleted: [...deletes],
    created: after.filter(({ id }) => created.has(id)),
    updated: changed.filter(({ id }) => named.has(id)),
    affected: changed.filter(({ id }) => !named.has(id)),
  };
}

function isSame(a: PlannedRecord, b: PlannedRecord): boolean {
  return a.name === b.name && rrsetValue(a) === rrsetValue(b) && a.ttl === b.ttl && a.proxied === b.proxied && a.comment === b.comment
    && originFields.every((field) => a[field] === b[field]);
}

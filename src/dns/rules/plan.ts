import type { Issue } from '../../core/errors';
import { canonicalRecordName } from './names';
import { canonicalOrigin, noOrigin, type Origin } from './origins';
import { PlanState } from './plan-state';
import { rrsetValue, type RecordType, type ZoneRecord } from './rrset';
import { canonicalRecord, ttlDefault, ttlMax, ttlMin, valueAsGiven } from './values';

/** Fields of a record that a write may give; absent: kept, joined or defaulted. null clears; in a creation it is absent. */
export type RecordFields = {
  name?: string | undefined; value?: string | undefined; ttl?: number | null | undefined; priority?: number | null | undefined; proxied?: boolean | undefined;
  originProtocol?: 'http' | 'https' | null | undefined; originPort?: number | null | undefined; originPath?: string | null | undefined;
  originHostHeader?: string | null | undefined; comment?: string | null | undefined;
};
export type PlannedRecord = ZoneRecord & { comment: string | null };
export type Creation<R> = { type: RecordType; fields: RecordFields; make: (record: Omit<PlannedRecord, 'id'>) => R };

/** All writes of one transaction, done in this order. An update of a record that is not active restores it. */
export type Writes<R extends PlannedRecord> = {
  deletes: readonly R[];
  updates: readonly { record: R; fields: RecordFields }[];
  creates: readonly Creation<R>[];
};

export type Plan<R extends PlannedRecord> = {
  /** The records after the write. */
  after: R[];
  created: R[];
  /** Those the updates name, as they are then. */
  named: R[];
  /** Named ones that differ from before. */
  updated: R[];
  /** Others whose ttl, proxied or origin followed. */
  affected: R[];
  deleted: R[];
  /** What stood there before, by id. */
  before: ReadonlyMap<string, R>;
  /** Faults visible from the request and the zone's name; paths begin with `updates.0.` or `creates.0.`. */
  issues: Issue[];
};

/** What decides about a request apart from the zone's records: its name, and the ports that are our own. */
export type PlanRules = { domain: string; platformPorts: ReadonlySet<number> };

/**
 * The state a write leads to (contract dns.md §4.3). An RRset shares its ttl, and all A and AAAA records of a name share
 * proxied and origin (one pool): what an update gives becomes everybody's, what a record coming to a name does not give it
 * takes from them. A creation does not change a pool: one that differs is left for `mixed_proxy` to refuse.
 * `before`: all active records at every name the writes concern.
 */
export function planWrites<R extends PlannedRecord>(rules: PlanRules, before: readonly R[], writes: Writes<R>): Plan<R> {
  const issues: Issue[] = [];
  const gone = new Set(writes.deletes.map(({ id }) => id));
  const state = new PlanState(before.filter(({ id }) => !gone.has(id)));
  const named = writes.updates.map(({ record, fields }, i) => {
    const current = state.get(record.id);
    const [next, faults] = completed(rules, state, { record: current ?? record, fields, arrives: !current });
    issues.push(...faults.map((fault) => ({ ...fault, path: `updates.${i}.${fault.path}` })));
    state.put(next);
    state.spread(next, { pool: true });
    return next.id;
  });
  const created = writes.creates.map(({ type, fields, make }, i) => {
    const blank = make({ type, name: '@', value: '', ttl: ttlDefault, priority: null, proxied: false, ...noOrigin, comment: null });
    const [next, faults] = completed(rules, state, { record: blank, fields: given(fields), arrives: true });
    issues.push(...faults.map((fault) => ({ ...fault, path: `creates.${i}.${fault.path}` })));
    state.put(next);
    state.spread(next, { pool: false });
    return next.id;
  });
  const known = new Map(before.map((record) => [record.id, record]));
  const those = (ids: readonly string[]): R[] => ids.flatMap((id) => state.get(id) ?? []);
  const changed = state.all().filter((record) => isChanged(known.get(record.id), record));
  const [isNamed, isCreated] = [new Set(named), new Set(created)];
  return {
    after: state.all(), issues, before: known, deleted: [...writes.deletes], created: those(created), named: those(named),
    updated: changed.filter(({ id }) => isNamed.has(id)), affected: changed.filter(({ id }) => !isNamed.has(id) && !isCreated.has(id)),
  };
}

/** null in a creation is what is not given. */
function given(fields: RecordFields): RecordFields {
  return {
    ...fields, ttl: fields.ttl ?? undefined, priority: fields.priority ?? undefined, comment: fields.comment ?? undefined, originProtocol: fields.originProtocol ?? undefined,
    originPort: fields.originPort ?? undefined, originPath: fields.originPath ?? undefined, originHostHeader: fields.originHostHeader ?? undefined,
  };
}

type Step<R> = { record: R; fields: RecordFields; /** It was not active before. */ arrives: boolean };

/** The record with the fields applied and made canonical, and every fault in them. */
function completed<R extends PlannedRecord>(rules: PlanRules, state: PlanState<R>, { record, fields, arrives }: Step<R>): [R, Issue[]] {
  const issues: Issue[] = [];
  const name = fields.name === undefined ? { value: record.name } : canonicalRecordName(fields.name, rules.domain);
  if (name.fault !== undefined) issues.push({ path: 'name', message: name.fault });
  const placed = { ...record, name: name.value ?? record.name };
  const base = arrives || placed.name !== record.name ? { ...placed, ...state.sharedBy(placed) } : placed;
  const proxied = fields.proxied ?? base.proxied;
  const ttl = fields.ttl === null ? ttlDefault : (fields.ttl ?? base.ttl);
  if (fields.ttl != null && (ttl < ttlMin || ttl > ttlMax)) issues.push({ path: 'ttl', message: `must be ${ttlMin} to ${ttlMax}` });
  const content = canonicalRecord({ ...placed, value: fields.value ?? valueAsGiven(record), priority: fields.priority === undefined ? record.priority : fields.priority, proxied }, rules.domain);
  const origin = canonicalOrigin(originOver(proxied ? base : noOrigin, fields), proxied, rules.platformPorts);
  issues.push(...(content.faults ?? []).filter(({ path }) => path !== 'name' || name.fault === undefined), ...(origin.faults ?? []));
  const comment = fields.comment === undefined ? record.comment : fields.comment;
  return [{ ...base, proxied, ttl, comment, ...(origin.origin ?? noOrigin), ...(content.faults ? {} : { value: content.value, priority: content.priority }) }, issues];
}

/** What is given over what stands there: on a record that is no longer proxied nothing stands. */
function originOver(base: Origin, fields: RecordFields): Origin {
  return {
    originProtocol: fields.originProtocol === undefined ? base.originProtocol : fields.originProtocol,
    originPort: fields.originPort === undefined ? base.originPort : fields.originPort,
    originPath: fields.originPath === undefined ? base.originPath : fields.originPath,
    originHostHeader: fields.originHostHeader === undefined ? base.originHostHeader : fields.originHostHeader,
  };
}

function isChanged(earlier: PlannedRecord | undefined, record: PlannedRecord): boolean {
  return !earlier || earlier.name !== record.name || rrsetValue(earlier) !== rrsetValue(record) || earlier.ttl !== record.ttl || earlier.proxied !== record.proxied
    || earlier.comment !== record.comment || earlier.originProtocol !== record.originProtocol || earlier.originPort !== record.originPort
    || earlier.originPath !== record.originPath || earlier.originHostHeader !== record.originHostHeader;
}

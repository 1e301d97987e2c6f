import { operationsOf, Reply } from '../../http/operation';
import type { DnsDeps } from '../deps';
import { etag } from '../faults';
import { prepareTargets } from '../flattening';
import { createRecord, deleteRecord, deleteRecords, getRecord, pageRecords, restoreRecord, updateRecord } from '../records';
import {
  bulkDeleteBody, bulkDeletedAnswer, bulkDeleteQuery, createRecordBody, listRecordsAnswer, listRecordsQuery, recordAnswer, recordDeletedAnswer, recordWrittenAnswer,
  updateRecordBody, writeQuery, type RecordView,
} from '../schemas';
import type { RecordRow } from '../store/records';
import { getZone } from '../zones';
import type { ZoneWritten } from '../zone-writes';
import { awaited, recordWriteRate, showChange, showRecords, showWritten, type Publication } from './shown';

const { project, scoped } = operationsOf<DnsDeps>();
const tag = 'DNS records';
const path = '/dns/zones/:zoneId/records';
/** What a write can be refused for by the state it leads to. */
export const writeErrors = ['service_suspended', 'precondition_failed', 'duplicate_record', 'cname_conflict', 'cname_loop', 'delegation_conflict', 'null_mx_conflict', 'mixed_proxy', 'origin_not_allowed', 'rrset_too_large', 'quota_exceeded'] as const;
export const limits = ({ caller, params }: { caller: { project: { id: string } }; params: { zoneId: string } }) => [{ rule: recordWriteRate, key: `${caller.project.id}/${params.zoneId}` }];

const listDnsRecords = project('dns:read')({
  id: 'listDnsRecords', method: 'get', path, tag,
  summary: 'Records of a zone',
  query: listRecordsQuery, answer: listRecordsAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params, query }) => {
    const zone = await getZone(deps, caller.project.id, params.zoneId);
    const { items, ...page } = await pageRecords(deps, zone, query);
    return { records: await showRecords(deps, zone, items), ...page };
  },
});

const createDnsRecord = project('dns:write')({
  id: 'createDnsRecord', method: 'post', path, tag,
  summary: 'Create a record',
  description: 'Answered by our name servers within milliseconds of the answer.',
  query: writeQuery, body: createRecordBody, answer: recordWrittenAnswer, errors: writeErrors, idempotent: true, limits,
  handle: async ({ deps, caller, params: { zoneId }, query: { wait }, body: { type, ...fields }, cause, request: { ifMatch }, transact }) => {
    await prepareTargets(deps, caller.project.id, zoneId, [{ type, ...fields }]);
    return awaited(deps, zoneId, wait, await transact(async (tx) => shown(deps, await createRecord(tx, deps, { caller, zoneId, cause, ifMatch, record: { type, fields } }))));
  },
});

const getDnsRecord = project('dns:read')({
  id: 'getDnsRecord', method: 'get', path: `${path}/:recordId`, tag,
  summary: 'A record',
  answer: recordAnswer,
  handle: async ({ deps, caller, params }) => {
    const zone = await getZone(deps, caller.project.id, params.zoneId);
    const row = await getRecord(deps.db.prisma, zone.id, params.recordId);
    return new Reply({ record: only(await showRecords(deps, zone, [row])) }, { headers: { ETag: etag(row.version) } });
  },
});

const updateDnsRecord = project('dns:write')({
  id: 'updateDnsRecord', method: 'patch', path: `${path}/:recordId`, tag,
  summary: 'Change a record',
  description: 'null clears a field. A ttl becomes that of all records of the name and type, proxied and origin those of all addresses of the name.',
  query: writeQuery, body: updateRecordBody, answer: recordWrittenAnswer, errors: ['type_immutable', 'managed_record', ...writeErrors], limits,
  handle: async ({ deps, caller, params, query: { wait }, body: { type, ...fields }, cause, request: { ifMatch }, transact }) => {
    if (fields.name !== undefined || fields.value !== undefined) await prepareTargets(deps, caller.project.id, params.zoneId, [{ ...params, ...fields }]);
    return awaited(deps, params.zoneId, wait, await transact(async (tx) => shown(deps, await updateRecord(tx, deps, { caller, ...params, cause, ifMatch, type, fields }))));
  },
});

const deleteDnsRecord = project('dns:write')({
  id: 'deleteDnsRecord', method: 'delete', path: `${path}/:recordId`, tag,
  summary: 'Delete a record',
  description: 'It can be restored.',
  query: writeQuery, answer: recordDeletedAnswer, errors: ['service_suspended', 'managed_record', 'precondition_failed'], limits,
  handle: async ({ deps, caller, params, query: { wait }, cause, request: { ifMatch }, transact }) => awaited(deps, params.zoneId, wait,
    await transact(async (tx) => ({ deleted: true as const, recordId: params.recordId, ...shown(deps, await deleteRecord(tx, deps, { caller, ...params, cause, ifMatch })) }))),
});

const restoreDnsRecord = project('dns:write')({
  id: 'restoreDnsRecord', method: 'post', path: `${path}/:recordId/restore`, tag,
  summary: 'Restore a deleted record',
  description: 'The same id again; it joins the ttl, proxied and origin its name has now.',
  query: writeQuery, answer: recordWrittenAnswer, errors: ['invalid_state', 'managed_record', ...writeErrors], limits,
  handle: async ({ deps, caller, params, query: { wait }, cause, request: { ifMatch }, transact }) => {
    await prepareTargets(deps, caller.project.id, params.zoneId, [params]);
    return awaited(deps, params.zoneId, wait, await transact(async (tx) => shown(deps, await restoreRecord(tx, deps, { caller, ...params, cause, ifMatch }))));
  },
});

const bulkDeleteDnsRecords = project('dns:write')({
  id: 'bulkDeleteDnsRecords', method: 'post', path: `${path}/bulk-delete`, tag,
  summary: 'Delete up to 100 records as one change',
  query: bulkDeleteQuery, body: bulkDeleteBody, answer: bulkDeletedAnswer, errors: ['service_suspended', 'precondition_failed', 'invalid_state'], limits,
  handle: async ({ deps, caller, params: { zoneId }, query: { atomic, wait }, body: { recordIds }, cause, request: { ifMatch }, transact }) => awaited(deps, zoneId, wait, await transact(async (tx) => {
    const { deletedIds, notFound, skipped, ...done } = await deleteRecords(tx, deps, { caller, zoneId, cause, ifMatch, recordIds, atomic: atomic ?? false });
    return { deleted: deletedIds.length > 0, deletedIds, deletedCount: deletedIds.length, notFound, skipped, publication: showChange(done).publication };
  })),
});

const listDnsRecordsByKey = scoped('dns:read')({
  id: 'listDnsRecordsByKey', method: 'get', path: '/api/dns/zones/:zoneId/records', tag,
  summary: "Active records of a zone of the key's project",
  query: listRecordsQuery, answer: listRecordsAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params, query }) => {
    const zone = await getZone(deps, caller.projectId, params.zoneId);
    const { items, ...page } = await pageRecords(deps, zone, { ...query, status: 'active' });
    return { records: await showRecords(deps, zone, items), ...page };
  },
});

export const recordOperations = [
  listDnsRecords, createDnsRecord, bulkDeleteDnsRecords, getDnsRecord, updateDnsRecord, deleteDnsRecord, restoreDnsRecord, listDnsRecordsByKey,
];

type Shown = { record: RecordView; affectedRecordIds: string[]; warnings: { code: string; message: string }[]; publication: Publication };

function shown(deps: DnsDeps, { record, ...done }: ZoneWritten & { record: RecordRow }): Shown {
  return { record: only(showWritten(deps, done, [record])), ...showChange(done) };
}

function only<T>([first]: readonly T[]): T {
  if (first === undefined) throw new Error('One record is shown as one.');
  return first;
}

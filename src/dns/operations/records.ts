import { operationsOf, Reply, type RateRule } from '../../http/operation';
import type { DnsDeps } from '../deps';
import { etag } from '../faults';
import { createRecord, deleteRecord, deleteRecords, getRecord, pageRecords, restoreRecord, updateRecord, type ZoneWritten } from '../records';
import {
  bulkDeleteBody, bulkDeletedAnswer, bulkDeleteQuery, createRecordBody, listRecordsAnswer, listRecordsQuery, recordAnswer, recordDeletedAnswer, recordWrittenAnswer,
  updateRecordBody,
} from '../schemas';
import type { RecordRow } from '../store/records';
import { recordWarnings } from '../rules/warnings';
import { RecordIndex } from '../rules/record-index';
import { getZone } from '../zones';
import { publicationOf, showRecord } from './shown';

const { project, scoped } = operationsOf<DnsDeps>();
const tag = 'DNS records';
const path = '/dns/zones/:zoneId/records';
const writeErrors = ['service_suspended', 'duplicate_record', 'cname_conflict', 'cname_loop', 'delegation_conflict', 'null_mx_conflict', 'origin_not_allowed', 'rrset_too_large', 'quota_exceeded'] as const;
const writeRate: RateRule = { name: 'dns-record-writes', limit: 20, periodSeconds: 1, burst: 200 };

const listDnsRecords = project('dns:read')({
  id: 'listDnsRecords', method: 'get', path, tag,
  summary: 'Records of a zone',
  query: listRecordsQuery, answer: listRecordsAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params, query }) => {
    const zone = await getZone(deps, caller.project.id, params.zoneId);
    const { items, ...page } = await pageRecords(deps, zone.id, query);
    return { records: items.map((record) => showRecord(deps, record, zone)), ...page };
  },
});

const createDnsRecord = project('dns:write')({
  id: 'createDnsRecord', method: 'post', path, tag,
  summary: 'Create a record',
  description: 'Answered by our name servers within milliseconds of the answer.',
  body: createRecordBody, answer: recordWrittenAnswer, errors: [...writeErrors, 'mixed_proxy'], idempotent: true,
  handle: async ({ deps, caller, params: { zoneId }, body: { type, ...fields }, cause, transact }) => {
    await deps.limiter.take(writeRate, `${caller.project.id}/${zoneId}`);
    return transact(async (tx) => shown(deps, await createRecord(tx, deps, { caller, zoneId, cause, record: { type, fields } })));
  },
});

const getDnsRecord = project('dns:read')({
  id: 'getDnsRecord', method: 'get', path: `${path}/:recordId`, tag,
  summary: 'A record',
  answer: recordAnswer,
  handle: async ({ deps, caller, params }) => {
    const zone = await getZone(deps, caller.project.id, params.zoneId);
    const record = await getRecord(deps.db.prisma, zone.id, params.recordId);
    return new Reply({ record: showRecord(deps, record, zone) }, { headers: { ETag: etag(record.version) } });
  },
});

const updateDnsRecord = project('dns:write')({
  id: 'updateDnsRecord', method: 'patch', path: `${path}/:recordId`, tag,
  summary: 'Change a record',
  description: 'null clears a field. A ttl becomes that of all records of the name and type, proxied and origin those of all addresses of the name.',
  body: updateRecordBody, answer: recordWrittenAnswer, errors: ['type_immutable', 'managed_record', 'precondition_failed', ...writeErrors],
  handle: async ({ deps, caller, params, body: { type, ...fields }, cause, request, transact }) => {
    await deps.limiter.take(writeRate, `${caller.project.id}/${params.zoneId}`);
    return transact(async (tx) => shown(deps, await updateRecord(tx, deps, { caller, ...params, cause, ifMatch: request.ifMatch, type, fields })));
  },
});

const deleteDnsRecord = project('dns:write')({
  id: 'deleteDnsRecord', method: 'delete', path: `${path}/:recordId`, tag,
  summary: 'Delete a record',
  description: 'It can be restored.',
  answer: recordDeletedAnswer, errors: ['service_suspended', 'managed_record', 'precondition_failed'],
  handle: async ({ deps, caller, params, cause, request, transact }) => {
    await deps.limiter.take(writeRate, `${caller.project.id}/${params.zoneId}`);
    return transact(async (tx) => ({ deleted: true as const, recordId: params.recordId, ...shown(deps, await deleteRecord(tx, deps, { caller, ...params, cause, ifMatch: request.ifMatch })) }));
  },
});

const restoreDnsRecord = project('dns:write')({
  id: 'restoreDnsRecord', method: 'post', path: `${path}/:recordId/restore`, tag,
  summary: 'Restore a deleted record',
  description: 'The same id again; it joins the ttl, proxied and origin its name has now.',
  answer: recordWrittenAnswer, errors: ['invalid_state', 'managed_record', ...writeErrors],
  handle: async ({ deps, caller, params, cause, request, transact }) => {
    await deps.limiter.take(writeRate, `${caller.project.id}/${params.zoneId}`);
    return transact(async (tx) => shown(deps, await restoreRecord(tx, deps, { caller, ...params, cause, ifMatch: request.ifMatch })));
  },
});

const bulkDeleteDnsRecords = project('dns:write')({
  id: 'bulkDeleteDnsRecords', method: 'post', path: `${path}/bulk-delete`, tag,
  summary: 'Delete up to 100 records as one change',
  query: bulkDeleteQuery, body: bulkDeleteBody, answer: bulkDeletedAnswer, errors: ['service_suspended', 'invalid_state'],
  handle: async ({ deps, caller, params: { zoneId }, query, body: { recordIds }, cause, transact }) => {
    await deps.limiter.take(writeRate, `${caller.project.id}/${zoneId}`);
    return transact(async (tx) => {
      const { zone, written, deletedIds, notFound, skipped } = await deleteRecords(tx, deps, { caller, zoneId, cause, recordIds, atomic: query.atomic ?? false });
      return { deleted: deletedIds.length > 0, deletedIds, deletedCount: deletedIds.length, notFound, skipped, publication: publicationOf(zone, written) };
    });
  },
});

const listDnsRecordsByKey = scoped('dns:read')({
  id: 'listDnsRecordsByKey', method: 'get', path: '/api/dns/zones/:zoneId/records', tag,
  summary: "Active records of a zone of the key's project",
  query: listRecordsQuery, answer: listRecordsAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params, query }) => {
    const zone = await getZone(deps, caller.projectId, params.zoneId);
    const { items, ...page } = await pageRecords(deps, zone.id, { ...query, status: 'active' });
    return { records: items.map((record) => showRecord(deps, record, zone)), ...page };
  },
});

export const recordOperations = [
  listDnsRecords, createDnsRecord, bulkDeleteDnsRecords, getDnsRecord, updateDnsRecord, deleteDnsRecord, restoreDnsRecord, listDnsRecordsByKey,
];

function shown(deps: DnsDeps, { zone, written, record }: ZoneWritten & { record: RecordRow }) {
  return {
    record: showRecord(deps, { ...record, version: Math.max(record.version, changed(written, record) ? written.version : 0) }, zone),
    affectedRecordIds: written.affected.map(({ id }) => id),
    warnings: record.deletedAt ? [] : recordWarnings(new RecordIndex(zone.domain, written.after), [record]),
    publication: publicationOf(zone, written),
  };
}

function changed({ created, updated }: ZoneWritten['written'], { id }: RecordRow): boolean {
  return [...created, ...updated].some((record) => record.id === id);
}

import { operationsOf, Reply } from '../../http/operation';
import { applyBatch } from '../batch';
import { batchAnswer, batchBody, batchQuery, exportAnswer, importAnswer, importBody } from '../batch-schemas';
import type { DnsDeps } from '../deps';
import { prepareTargets } from '../flattening';
import { etag } from '../faults';
import { exportZone, importZone } from '../zone-files';
import { limits, writeErrors } from './records';
import { awaited } from './shown';
import { showBatch } from './show-batch';

const { project } = operationsOf<DnsDeps>();
const tag = 'DNS records';

const batchDnsRecords = project('dns:write')({
  id: 'batchDnsRecords', method: 'post', path: '/dns/zones/:zoneId/records/batch', tag,
  summary: 'Delete, change and create up to 1,000 records as one change',
  description: 'All or nothing: the rules judge what everything together leads to, so a name can change hands. If-Match names a version of the zone.',
  query: batchQuery, body: batchBody, answer: batchAnswer, errors: ['managed_record', 'type_immutable', ...writeErrors], idempotent: true, limits,
  handle: async ({ deps, caller, params: { zoneId }, query: { wait }, body: { deletes, updates, creates, dryRun = false }, cause, request: { ifMatch }, transact }) => {
    const batch = {
      deletes, dryRun, updates: updates.map(({ id, type, ...fields }) => ({ id, type, fields })), creates: creates.map(({ type, ...fields }) => ({ type, fields })),
    };
    await prepareTargets(deps, caller.project.id, zoneId, [...creates, ...updates.filter(({ name, value }) => name !== undefined || value !== undefined).map(({ id, name, value }) => ({ recordId: id, name, value }))]);
    return awaited(deps, zoneId, dryRun ? undefined : wait, await transact(async (tx) => {
      const done = await applyBatch(tx, deps, { caller, zoneId, cause, ifMatch, batch });
      return showBatch(deps, done, { dryRun, updated: done.written.named });
    }));
  },
});

const exportDnsZone = project('dns:read')({
  id: 'exportDnsZone', method: 'get', path: '/dns/zones/:zoneId/export', tag,
  summary: 'The zone as a zone file',
  description: 'RFC 1035; other servers load it as it is. What DNS has no word for (proxy settings, an apex CNAME, comments) stands in comments that an import here understands.',
  answer: exportAnswer,
  handle: async ({ deps, caller, params }) => {
    const file = await exportZone(deps, caller.project.id, params.zoneId);
    return new Reply(file, { headers: { ETag: etag(file.version) } });
  },
});

const importDnsZone = project('dns:write')({
  id: 'importDnsZone', method: 'post', path: '/dns/zones/:zoneId/import', tag,
  summary: 'Take the records of a zone file, as one change',
  description: 'Lines that a zone here does not hold are skipped with the reason. A conflict between records refuses the whole. If-Match names a version of the zone.',
  query: batchQuery, body: importBody, bodyMaxBytes: 512 * 1024, answer: importAnswer, errors: writeErrors, idempotent: true, limits,
  handle: async ({ deps, caller, params: { zoneId }, query: { wait }, body: { zoneFile, strategy, dryRun = false }, cause, request: { ifMatch }, transact }) => awaited(deps, zoneId, dryRun ? undefined : wait, await transact(async (tx) => {
    const { skipped, ...done } = await importZone(tx, deps, { caller, zoneId, cause, ifMatch, file: { zoneFile, strategy, dryRun } });
    return { ...showBatch(deps, done, { dryRun, updated: done.written.updated }), skipped };
  })),
});

export const batchOperations = [batchDnsRecords, exportDnsZone, importDnsZone];

import { operationsOf } from '../../http/operation';
import { applyBatch } from '../batch';
import { batchAnswer, batchBody, batchQuery } from '../batch-schemas';
import type { DnsDeps } from '../deps';
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
    return awaited(deps, zoneId, dryRun ? undefined : wait, await transact(async (tx) => showBatch(deps, await applyBatch(tx, deps, { caller, zoneId, cause, ifMatch, batch }), dryRun)));
  },
});

export const batchOperations = [batchDnsRecords];

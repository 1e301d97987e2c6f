import { operationsOf, Reply } from '../../http/operation';
import { viewOperation, operationSchema } from '../../operations/view';
import type { DnsDeps } from '../deps';
import { etag } from '../faults';
import { createZoneBody, deletedZoneAnswer, listZonesAnswer, listZonesQuery, updateZoneBody, zoneAnswer, zoneWarningsAnswer } from '../schemas';
import { getReport } from '../checks';
import { warnOfNameservers } from '../nameservers';
import { canonicalWish, changeNameservers, createZone, deleteZone, getZone, pageZones, previewNameservers, restoreZone } from '../zones';
import { recordLimitOf, showZone } from './shown';

const { project, scoped } = operationsOf<DnsDeps>();
const tag = 'DNS zones';

const listDnsZones = project('dns:read')({
  id: 'listDnsZones', method: 'get', path: '/dns/zones', tag,
  summary: 'Zones of the project, newest first',
  description: 'Deleted zones are listed only with status=deleted.',
  query: listZonesQuery, answer: listZonesAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, query }) => {
    const [{ items, ...page }, limit] = await Promise.all([pageZones(deps, caller.project.id, query), recordLimitOf(deps, caller.org.id)]);
    return { zones: items.map((zone) => showZone(deps, zone, limit)), ...page };
  },
});

const createDnsZone = project('dns:zones')({
  id: 'createDnsZone', method: 'post', path: '/dns/zones', tag,
  summary: 'Add a domain',
  description: 'Our servers answer it at once unless somebody else holds the name; it becomes active when its name servers are ours.',
  body: createZoneBody, answer: zoneWarningsAnswer.extend({ operation: operationSchema }), errors: ['zone_exists', 'quota_exceeded'], idempotent: true,
  handle: async ({ deps, caller, body, cause, transact }) => {
    const wish = canonicalWish(deps.dnsPlatform, body);
    const limit = await recordLimitOf(deps, caller.org.id);
    const elsewhere = await warnOfNameservers(deps, wish, wish.customNameservers);
    return transact(async (tx) => {
      const { zone, operation, warnings } = await createZone(tx, deps, { caller, wish, cause });
      return { zone: showZone(deps, zone, limit), operation: viewOperation(operation), warnings: [...warnings, ...elsewhere] };
    });
  },
});

const getDnsZone = project('dns:read')({
  id: 'getDnsZone', method: 'get', path: '/dns/zones/:zoneId', tag,
  summary: 'A zone, with the report of its last check',
  answer: zoneAnswer,
  handle: async ({ deps, caller, params }) => {
    const zone = await getZone(deps, caller.project.id, params.zoneId);
    const [limit, report] = await Promise.all([recordLimitOf(deps, caller.org.id), getReport(deps, zone.id)]);
    return new Reply({ zone: showZone(deps, zone, limit, report) }, { headers: { ETag: etag(zone.version) } });
  },
});

const updateDnsZone = project('dns:zones')({
  id: 'updateDnsZone', method: 'patch', path: '/dns/zones/:zoneId', tag,
  summary: 'Change the name servers of a zone',
  description: 'Names inside the zone get A and AAAA records with our addresses, and are registered with the glue shown; others must lead to our name servers. None: our own names again.',
  body: updateZoneBody, answer: zoneWarningsAnswer, errors: ['service_suspended', 'precondition_failed', 'quota_exceeded'],
  handle: async ({ deps, caller, params: { zoneId }, body, cause, request: { ifMatch }, transact }) => {
    const elsewhere = await previewNameservers(deps, { projectId: caller.project.id, zoneId, ...body });
    const limit = await recordLimitOf(deps, caller.org.id);
    return transact(async (tx) => {
      const { zone, warnings } = await changeNameservers(tx, deps, { caller, zoneId, cause, ifMatch, ...body });
      return { zone: showZone(deps, zone, limit), warnings: [...warnings, ...elsewhere] };
    });
  },
});

const deleteDnsZone = project('dns:zones')({
  id: 'deleteDnsZone', method: 'delete', path: '/dns/zones/:zoneId', tag,
  summary: 'Delete a zone',
  description: 'Our answers end at once. Everything comes back with restore until purgeAt.',
  answer: deletedZoneAnswer, errors: ['precondition_failed'],
  handle: async ({ deps, caller, params: { zoneId }, cause, request: { ifMatch }, transact }) => {
    const limit = await recordLimitOf(deps, caller.org.id);
    return transact(async (tx) => {
      const { zone, warnings } = await deleteZone(tx, deps, { caller, zoneId, cause, ifMatch });
      return { deleted: true as const, zoneId, zone: showZone(deps, zone, limit), warnings };
    });
  },
});

const restoreDnsZone = project('dns:zones')({
  id: 'restoreDnsZone', method: 'post', path: '/dns/zones/:zoneId/restore', tag,
  summary: 'Restore a deleted zone with its records',
  answer: zoneAnswer, errors: ['invalid_state', 'zone_exists', 'quota_exceeded'],
  handle: async ({ deps, caller, params: { zoneId }, cause, transact }) => {
    const limit = await recordLimitOf(deps, caller.org.id);
    return transact(async (tx) => ({ zone: showZone(deps, await restoreZone(tx, deps, { caller, zoneId, cause }), limit) }));
  },
});

const listDnsZonesByKey = scoped('dns:read')({
  id: 'listDnsZonesByKey', method: 'get', path: '/api/dns/zones', tag,
  summary: "Zones of the key's project",
  query: listZonesQuery, answer: listZonesAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, query }) => {
    const [{ items, ...page }, limit] = await Promise.all([pageZones(deps, caller.projectId, query), recordLimitOf(deps, caller.orgId)]);
    return { zones: items.map((zone) => showZone(deps, zone, limit)), ...page };
  },
});

export const zoneOperations = [listDnsZones, createDnsZone, getDnsZone, updateDnsZone, deleteDnsZone, restoreDnsZone, listDnsZonesByKey];

import { operationsOf } from '../../http/operation';
import { batchAnswer, batchQuery, listVersionsAnswer, listVersionsQuery, resolveAnswer, resolveQuery, restoreVersionBody, versionAnswer } from '../batch-schemas';
import type { DnsDeps } from '../deps';
import { getVersion, pageVersions, restoreVersion } from '../history';
import { resolveInZone } from '../resolve';
import type { VersionRow } from '../store/versions';
import { getZone } from '../zones';
import { limits, writeErrors } from './records';
import { showBatch } from './show-batch';
import { awaited } from './shown';

const { project } = operationsOf<DnsDeps>();
const tag = 'DNS zones';
const path = '/dns/zones/:zoneId/versions';

const listDnsZoneVersions = project('dns:read')({
  id: 'listDnsZoneVersions', method: 'get', path, tag,
  summary: 'Versions of a zone, newest first',
  description: 'Who changed what is kept for 90 days.',
  query: listVersionsQuery, answer: listVersionsAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params, query }) => {
    const zone = await getZone(deps, caller.project.id, params.zoneId);
    const { items, ...page } = await pageVersions(deps, zone.id, query);
    return { versions: items.map(shown), ...page };
  },
});

const getDnsZoneVersion = project('dns:read')({
  id: 'getDnsZoneVersion', method: 'get', path: `${path}/:version`, tag,
  summary: 'A version of a zone, with what it changed',
  answer: versionAnswer,
  handle: async ({ deps, caller, params }) => {
    const zone = await getZone(deps, caller.project.id, params.zoneId);
    const { changes, ...version } = await getVersion(deps, zone.id, params.version);
    return { version: shown(version), changes };
  },
});

const restoreDnsZoneVersion = project('dns:write')({
  id: 'restoreDnsZoneVersion', method: 'post', path: `${path}/:version/restore`, tag,
  summary: 'Bring back the records of a former version, as a new one',
  description: 'Records that products keep stay as they are. If-Match names a version of the zone.',
  query: batchQuery, body: restoreVersionBody, bodyOptional: true, answer: batchAnswer, errors: writeErrors, limits,
  handle: async ({ deps, caller, params: { zoneId, version }, query: { wait }, body: { dryRun = false }, cause, request: { ifMatch }, transact }) => awaited(deps, zoneId, dryRun ? undefined : wait, await transact(async (tx) => {
    const done = await restoreVersion(tx, deps, { caller, zoneId, cause, ifMatch, version, dryRun });
    return showBatch(deps, done, { dryRun, updated: done.written.updated });
  })),
});

const resolveDnsName = project('dns:read')({
  id: 'resolveDnsName', method: 'get', path: '/dns/zones/:zoneId/resolve', tag,
  summary: 'What our servers answer for a name, and why',
  query: resolveQuery, answer: resolveAnswer,
  handle: async ({ deps, caller, params, query }) => {
    const { trace, ...answer } = await resolveInZone(deps, await getZone(deps, caller.project.id, params.zoneId), query);
    return { answer, trace };
  },
});

export const versionOperations = [listDnsZoneVersions, getDnsZoneVersion, restoreDnsZoneVersion, resolveDnsName];

function shown({ created, updated, deleted, createdAt, ...version }: VersionRow) {
  return { ...version, counts: { created, updated, deleted }, createdAt: createdAt.toISOString() };
}

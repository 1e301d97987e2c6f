import { z } from 'zod';
import { operationsOf, type RateRule } from '../../http/operation';
import { operationSchema, viewOperation } from '../../operations/view';
import { awaitVerification, findFreshReport, requestVerification } from '../checks';
import type { DnsDeps } from '../deps';
import { reportSchema } from '../report';
import { zoneAnswer } from '../schemas';
import { awaitSync, compareZone, findFreshSync, requestSync } from '../sync';
import { syncReportSchema } from '../sync-report';
import { getZone } from '../zones';
import { recordLimitOf, showZone } from './shown';

const { project } = operationsOf<DnsDeps>();
const noBody = z.strictObject({}).meta({ id: 'VerifyDnsZone' });
const syncBody = z.strictObject({ dryRun: z.boolean().optional(), force: z.boolean().optional() }).meta({ id: 'SyncDnsZone' });
const rate: RateRule = { name: 'dns-verify', limit: 60, periodSeconds: 3_600 };

const verifyDnsZone = project('dns:write')({
  id: 'verifyDnsZone', method: 'post', path: '/dns/zones/:zoneId/verify', tag: 'DNS zones',
  summary: 'Check now who answers for the domain',
  description: 'Asks DNS itself, for 8 s at most; a report of the last 10 s is given again. Whatever is found, the answer says what to do next.',
  body: noBody, bodyOptional: true, answer: zoneAnswer.extend({ verification: reportSchema, operation: operationSchema.nullable() }),
  limits: ({ caller, params }) => [{ rule: rate, key: `${caller.project.id}/${params.zoneId}` }],
  handle: async ({ deps, caller, params: { zoneId }, cause, transact }) => {
    const askedAtMs = Date.now();
    const [zone, limit] = await Promise.all([getZone(deps, caller.project.id, zoneId), recordLimitOf(deps, caller.org.id)]);
    const fresh = await findFreshReport(deps, zone.id);
    if (fresh) return { zone: showZone(deps, zone, limit, fresh), verification: fresh, operation: null };
    const { requested } = await transact(async (tx) => ({ requested: await requestVerification(tx, { caller, zoneId, cause }) }));
    const { zone: checked, report, operation } = await awaitVerification(deps, zoneId, requested, askedAtMs);
    return { zone: showZone(deps, checked, limit, report), verification: report, operation: operation && viewOperation(operation) };
  },
});

const syncRate: RateRule = { name: 'dns-sync', limit: 60, periodSeconds: 3_600 };

const syncDnsZone = project('dns:write')({
  id: 'syncDnsZone', method: 'post', path: '/dns/zones/:zoneId/sync', tag: 'DNS zones',
  summary: "Compare what is answered with the zone, and correct it",
  description: 'Waits 5 s at most for every server; then the answer says partial and the work goes on. dryRun only compares. A change of most of the zone that nobody made here is blocked; force lets it pass.',
  body: syncBody, bodyOptional: true, answer: zoneAnswer.extend({ sync: syncReportSchema, operation: operationSchema.nullable() }),
  limits: ({ caller, params }) => [{ rule: syncRate, key: `${caller.project.id}/${params.zoneId}` }],
  handle: async ({ deps, caller, params: { zoneId }, body, cause, transact }) => {
    const [zone, limit] = await Promise.all([getZone(deps, caller.project.id, zoneId), recordLimitOf(deps, caller.org.id)]);
    const looked = body.dryRun ? (await compareZone(deps, zoneId)).report : body.force ? null : await findFreshSync(deps, zone);
    if (looked) return { zone: showZone(deps, zone, limit), sync: looked, operation: null };
    const { requested } = await transact(async (tx) => ({ requested: await requestSync(tx, { caller, zoneId, cause, force: body.force ?? false }) }));
    const { zone: synced, report, operation } = await awaitSync(deps, zoneId, requested);
    return { zone: showZone(deps, synced, limit), sync: report, operation: operation && viewOperation(operation) };
  },
});

export const verificationOperations = [verifyDnsZone, syncDnsZone];

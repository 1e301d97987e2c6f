import { randomBytes, randomInt } from 'node:crypto';
import { limit, release, reserve } from '../billing/service';
import { systemCause, type Cause, type ProjectCaller } from '../core/caller';
import { AppError, invalid } from '../core/errors';
import { newId, type Id } from '../core/ids';
import { readPage, unpagedMax, type Page, type PageRequest } from '../core/page';
import type { Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { openOperation, type OperationRow } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import { settleClaims } from './claims';
import type { DnsDeps } from './deps';
import { noZone, requireVersion, requireWritable, requireZone } from './faults';
import { ensureNameserverRecords, warnOfNameservers } from './nameservers';
import { nameserversOf, type Platform } from './rules/platform';
import { canonicalDomain, isAtOrBelow, registrableDomain } from './rules/domains';
import { canonicalHost } from './rules/names';
import { nextSerial } from './rules/serials';
import { firstCheckDelayMs, isLive, type ShownZoneStatus, type StatusReason } from './state';
import {
  ensureAssignment, findZone, insertZone, hasLiveClaim, listZones, liveZoneIds, loadZone, lockAnyZone, lockClaims, lockZone, markZoneDeleted, markZoneRestored, setCustomNameservers,
  setSuspension, type ZoneMode, type ZoneRow,
} from './store/zones';
import { bumpWhole } from './versions';

export type Warning = { code: string; message: string };
export type ZoneWish = { domain: string; mode: ZoneMode; customNameservers?: readonly string[] | undefined };
type CanonicalWish = { domain: string; unicodeDomain: string; mode: ZoneMode; customNameservers: string[]; warnings: Warning[] };

const quota = { product: 'dns', resource: 'dns.zones', n: 1 } as const;
const customMin = 2;
const customMax = 13;

/** Errors: `validation_error` naming every fault of domain and name servers (contract dns.md §4.1). */
export function canonicalWish(platform: Platform, wish: ZoneWish): CanonicalWish {
  const parsed = canonicalDomain(wish.domain, { allowTestTlds: platform.allowTestTlds, platformSuffixes: [platform.nameserverSuffix, platform.edgeSuffix] });
  if (parsed.fault !== undefined) throw invalid([{ path: 'domain', message: parsed.fault }]);
  const { domain, unicodeDomain, warnings } = parsed.value;
  return { domain, unicodeDomain, mode: wish.mode, customNameservers: canonicalNameservers(platform, domain, wish.customNameservers ?? []), warnings: [...warnings] };
}

function canonicalNameservers(platform: Platform, domain: string, given: readonly string[]): string[] {
  const issues: { path: string; message: string }[] = [];
  const suffixes = [platform.nameserverSuffix, platform.edgeSuffix];
  const names = given.map((text, i) => {
    const host = canonicalHost(text, domain, { underscores: false, wildcard: false });
    if (host.fault !== undefined) issues.push({ path: `customNameservers.${i}`, message: host.fault });
    else if (host.value === domain) issues.push({ path: `customNameservers.${i}`, message: 'must not be the domain itself' });
    else if (suffixes.some((suffix) => isAtOrBelow(host.value, suffix))) issues.push({ path: `customNameservers.${i}`, message: 'belongs to this platform; leave customNameservers empty for our own names' });
    return host.value ?? text;
  });
  if (names.length > 0 && (names.length < customMin || names.length > customMax)) issues.push({ path: 'customNameservers', message: `must be none or ${customMin} to ${customMax} names` });
  if (new Set(names).size < names.length) issues.push({ path: 'customNameservers', message: 'must not name a server twice' });
  if (issues.length > 0) throw invalid(issues);
  return names;
}

export type CreatedZone = { zone: ZoneRow; operation: OperationRow; warnings: Warning[] };

/** A pending claim that our servers answer at once where nobody holds the name. Errors: `zone_exists`; 402 `quota_exceeded`. */
export async function createZone(tx: Tx, deps: Pick<DnsDeps, 'dnsPlatform' | 'clock'>, request: { caller: ProjectCaller; wish: CanonicalWish; cause: Cause }): Promise<CreatedZone> {
  const { caller: { org, project }, wish, cause } = request;
  const owner = { orgId: org.id, projectId: project.id };
  const id = newId('zone');
  const registrable = registrableDomain(wish.domain);
  await lockClaims(tx, registrable);
  await reserve(tx, { ...owner, ...quota });
  const { token } = await ensureAssignment(tx, { projectId: project.id, domain: wish.domain, token: randomToken(), verifyToken: randomBytes(16).toString('hex') });
  await insertZone(tx, {
    id, ...owner, domain: wish.domain, unicodeDomain: wish.unicodeDomain, registrable, mode: wish.mode, customNameservers: wish.customNameservers,
    cnameToken: wish.mode === 'external' ? token : null, serial: nextSerial(0, deps.clock.now()), firstCheckSeconds: firstCheckDelayMs / 1000, cause,
  });
  await settleClaims(tx, deps.dnsPlatform, registrable, id);
  const operation = await openVerifyOperation(tx, { id, domain: wish.domain, ...owner }, cause);
  audit(tx, { ...owner, id }, cause, [{ field: 'domain', from: null, to: wish.domain }, { field: 'mode', from: null, to: wish.mode }]);
  const blocked = wish.customNameservers.length > 0 ? await ensureNameserverRecords(tx, deps, { id, ...wish }) : [];
  const zone = await loadZone(tx, id);
  if (!zone) throw noZone();
  return { zone, operation, warnings: [...wish.warnings, ...blocked] };
}

/** The operation that a first or a repeated check settles; its workflow waits for the zone to be proven. */
export function openVerifyOperation(tx: Tx, zone: { id: Id<'zone'>; domain: string; orgId: Id<'org'>; projectId: Id<'prj'> }, cause: Cause): Promise<OperationRow> {
  return openOperation(tx, {
    orgId: zone.orgId, projectId: zone.projectId, kind: 'dns.verify', resourceId: zone.id, summary: `Verify DNS zone ${zone.domain}`, requestId: cause.requestId,
    start: { workflow: 'verifyZone', workflowId: workflowIds.verifyZone(zone.id), queue: 'dns', payload: { zoneId: zone.id }, signal: 'recheck' },
  });
}

/** Errors: `not_found` for what is absent, foreign or deleted. */
export async function getZone(deps: Pick<DnsDeps, 'db'>, projectId: string, zoneId: string): Promise<ZoneRow> {
  return requireZone(await findZone(deps.db.prisma, projectId, zoneId));
}

export type ZoneQuery = PageRequest & { status?: ShownZoneStatus | undefined; mode?: ZoneMode | undefined; search?: string | undefined };

/** Zones of the project, newest first. Errors: `invalid_cursor`. */
export function pageZones(deps: Pick<DnsDeps, 'db' | 'cursors'>, projectId: string, query: ZoneQuery): Promise<Page<ZoneRow>> {
  const filter = { projectId, status: query.status ?? null, mode: query.mode ?? null, search: query.search?.toLowerCase() ?? null };
  return readPage(deps.cursors, { list: 'dns.zones', ...filter }, query, {
    limitDefault: unpagedMax, keyOf: (row) => [row.createdAt.toISOString(), row.id], fetch: (after, limit) => listZones(deps.db.prisma, filter, { after, limit }),
  });
}

type ZoneRequest = { caller: ProjectCaller; zoneId: string; cause: Cause };
type ZoneWrite = ZoneRequest & { ifMatch: string | null };

/** Our answers and the gateway's routes end with this commit; restore brings everything back until purgeAt. Errors: `not_found`, `precondition_failed`. */
export async function deleteZone(tx: Tx, deps: Pick<DnsDeps, 'dnsPlatform' | 'config'>, { caller, zoneId, cause, ifMatch }: ZoneWrite): Promise<{ zone: ZoneRow; warnings: Warning[] }> {
  const zone = requireZone(await lockZone(tx, caller.project.id, zoneId));
  requireVersion(ifMatch, zone.version);
  const deleted = await endZone(tx, deps, zone, { cause });
  const warnings = isLive(zone.status) && zone.served
    ? [{ code: 'still_delegated', message: `${zone.domain} is still delegated to ${nameserversOf(deps.dnsPlatform, zone).join(', ')}. Remove these at the registrar first next time, so that nobody sees the domain vanish.` }] : [];
  return { zone: deleted, warnings };
}

/** The claim ends: by its owner, with its project, or because it was never proven (`unverified`). The row must be locked. */
export async function endZone(tx: Tx, deps: Pick<DnsDeps, 'dnsPlatform' | 'config'>, zone: ZoneRow, { cause, reason = null }: { cause: Cause; reason?: StatusReason | null }): Promise<ZoneRow> {
  await markZoneDeleted(tx, zone.id, { purgeDays: deps.config.DNS_ZONE_PURGE_DAYS, reason });
  await bumpWhole(tx, zone);
  await settleClaims(tx, deps.dnsPlatform, zone.registrable, zone.id);
  await release(tx, { orgId: zone.orgId, projectId: zone.projectId, ...quota });
  audit(tx, zone, cause, [{ field: 'status', from: zone.status, to: 'deleted' }]);
  return await loadZone(tx, zone.id) ?? zone;
}

/** Errors: `not_found`; `invalid_state` unless deleted; `zone_exists`; 402 `quota_exceeded`. */
export async function restoreZone(tx: Tx, deps: Pick<DnsDeps, 'dnsPlatform'>, { caller, zoneId, cause }: ZoneRequest): Promise<ZoneRow> {
  const zone = await lockZone(tx, caller.project.id, zoneId);
  if (!zone) throw noZone();
  if (!zone.deletedAt) throw new AppError('invalid_state', 'The zone is not deleted.', { status: zone.status });
  await reserve(tx, { orgId: zone.orgId, projectId: zone.projectId, ...quota });
  const status = isLive(zone.status) && await hasLiveClaim(tx, zone.domain, zone.id) ? 'pending' : zone.status;
  await markZoneRestored(tx, { id: zone.id, domain: zone.domain, status });
  if (zone.customNameservers.length > 0) await ensureNameserverRecords(tx, deps, zone);
  await bumpLoaded(tx, zone.id);
  await settleClaims(tx, deps.dnsPlatform, zone.registrable, zone.id);
  await openVerifyOperation(tx, zone, cause);
  audit(tx, zone, cause, [{ field: 'status', from: 'deleted', to: status }]);
  return await loadZone(tx, zone.id) ?? zone;
}

/**
 * The zone answers these names as its servers, and those inside it have our addresses. The former ones count as proof for
 * seven more days. Errors: `not_found`, `service_suspended`, `precondition_failed`, `validation_error`, 402 `quota_exceeded`.
 */
export async function changeNameservers(
  tx: Tx, deps: Pick<DnsDeps, 'dnsPlatform'>, request: ZoneWrite & { customNameservers: readonly string[] },
): Promise<{ zone: ZoneRow; warnings: Warning[] }> {
  const zone = requireWritable(await lockZone(tx, request.caller.project.id, request.zoneId));
  requireVersion(request.ifMatch, zone.version);
  const names = canonicalNameservers(deps.dnsPlatform, zone.domain, request.customNameservers);
  const isSame = names.join() === zone.customNameservers.join();
  if (!isSame) await setCustomNameservers(tx, zone.id, names);
  const warnings = await ensureNameserverRecords(tx, deps, { ...zone, customNameservers: names });
  if (!isSame) {
    await bumpLoaded(tx, zone.id);
    await settleClaims(tx, deps.dnsPlatform, zone.registrable, zone.id);
    audit(tx, zone, request.cause, [{ field: 'customNameservers', from: zone.customNameservers, to: names }]);
  }
  return { zone: await loadZone(tx, zone.id) ?? zone, warnings };
}

/** What DNS says of the names in a request, asked before its transaction. Errors: `not_found`, `validation_error`. */
export async function previewNameservers(deps: Pick<DnsDeps, 'db' | 'dnsPlatform' | 'dnsResolver'>, request: { projectId: string; zoneId: string; customNameservers: readonly string[] }): Promise<Warning[]> {
  const zone = await getZone(deps, request.projectId, request.zoneId);
  return warnOfNameservers(deps, zone, canonicalNameservers(deps.dnsPlatform, zone.domain, request.customNameservers));
}

/** As bumpWhole, when the transaction has changed the zone before. */
async function bumpLoaded(tx: Tx, zoneId: string): Promise<void> {
  const zone = await loadZone(tx, zoneId);
  if (zone) await bumpWhole(tx, zone);
}

/** Active records a zone of the organisation may have; null: any number. */
export function recordLimitOf(deps: Pick<DnsDeps, 'db'>, orgId: string): Promise<number | null> {
  return limit(deps.db.prisma, { orgId }, 'dns.records');
}

/** For identity: every zone of the project is deleted. */
export async function requestDeletion(tx: Tx, deps: Pick<DnsDeps, 'dnsPlatform' | 'config'>, projectId: string): Promise<void> {
  for (const zoneId of await liveZoneIds(tx, projectId)) {
    const zone = await lockAnyZone(tx, zoneId);
    if (zone && !zone.deletedAt) await endZone(tx, deps, zone, { cause: systemCause('deleteProject') });
  }
}

/** For billing: zones of the organisation are answered on and cannot be changed. */
export async function suspendForPayment(tx: Tx, orgId: string): Promise<void> {
  await setSuspension(tx, orgId, 'billing');
}

export async function resumeFromPayment(tx: Tx, orgId: string): Promise<void> {
  await setSuspension(tx, orgId, null);
}

function audit(tx: Tx, zone: { id: Id<'zone'>; orgId: Id<'org'>; projectId: Id<'prj'> }, cause: Cause, changes: { field: string; from: unknown; to: unknown }[]): void {
  appendAudit(tx, { orgId: zone.orgId, projectId: zone.projectId, cause, outcome: 'done', target: { type: 'dnsZone', id: zone.id }, changes });
}

const tokenAlphabet = 'abcdefghjkmnpqrstvwxyz0123456789';

/** Ten characters, unguessable: a delegation left behind leads to a name that nobody else is ever given. */
function randomToken(): string {
  return Array.from({ length: 10 }, () => tokenAlphabet.charAt(randomInt(tokenAlphabet.length))).join('');
}

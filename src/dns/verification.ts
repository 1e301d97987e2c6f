import { systemCause, type Cause } from '../core/caller';
import type { Id } from '../core/ids';
import { inTransaction, type Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { openOperationsOf, settleOperation } from '../operations/store';
import { checkZone } from './check';
import type { Check, CheckDeps } from './check-facts';
import { settleClaims } from './claims';
import type { DnsDeps } from './deps';
import type { Report } from './report';
import { hasMovedFor, isExpired, isLive, nextCheckDelayMs, statusAfterCheck, type ZoneStatus } from './state';
import { findHolder, releaseCheckLease, takeCheckLease, writeCheck } from './store/checks';
import { loadZone, lockAnyZone, lockClaims, markEverLive, rememberProof, type ZoneRow } from './store/zones';
import { bumpWhole } from './versions';
import { endZone } from './zones';

export type VerificationDeps = CheckDeps & Pick<DnsDeps, 'config'>;

/** The lease outlives the longest check, of 8 s, by what a busy machine may need to write it down. */
const leaseSeconds = 20;

export type Verified = { zone: ZoneRow; report: Report };

/**
 * The zone has been checked and the row says what was found; the zone's open `dns.verify` operations are settled, whatever
 * the verdict. Null when the zone is gone or somebody else is checking it.
 */
export async function verifyZone(deps: VerificationDeps, zoneId: string): Promise<Verified | null> {
  if (!await takeCheckLease(deps.db.prisma, zoneId, leaseSeconds)) return null;
  try {
    return await check(deps, zoneId);
  } catch (error) {
    await releaseCheckLease(deps.db.prisma, zoneId);
    throw error;
  }
}

async function check(deps: VerificationDeps, zoneId: string): Promise<Verified | null> {
  const zone = await loadZone(deps.db.prisma, zoneId);
  if (!zone || zone.deletedAt) return null;
  const rivalId = isHolder(zone.status) ? null : await findHolder(deps.db.prisma, zone.domain, zoneId);
  const rival = rivalId === null ? null : await loadZone(deps.db.prisma, rivalId);
  // At the same time: both must be known within the time of one check.
  const [found, rivalCheck] = await Promise.all([checkZone(deps, zone), rival && checkZone(deps, rival)]);
  return inTransaction(deps.db, async (tx) => {
    await lockClaims(tx, zone.registrable);
    if (rival && found.result === 'verified' && rivalCheck?.result === 'not_verified') await apply(tx, deps, rival.id, { check: rivalCheck, claimedElsewhere: true });
    const claimedElsewhere = await findHolder(tx, zone.domain, zoneId) !== null;
    return apply(tx, deps, zoneId, { check: found, claimedElsewhere });
  });
}

function isHolder(status: ZoneStatus): boolean {
  return status === 'active' || status === 'degraded';
}

async function apply(tx: Tx, deps: VerificationDeps, zoneId: string, { check, claimedElsewhere }: { check: Check; claimedElsewhere: boolean }): Promise<Verified | null> {
  const zone = await lockAnyZone(tx, zoneId);
  if (!zone || zone.deletedAt) return null;
  const now = deps.clock.now();
  const conclusiveNo = check.result === 'not_verified';
  const inconclusive = check.result === 'inconclusive';
  const misses = inconclusive ? zone.misses : check.miss ? zone.misses + 1 : 0;
  const firstMissAt = misses === 0 ? null : zone.firstMissAt ?? now;
  const faulty = conclusiveNo || check.degrading || check.serverProblems;
  const failures = inconclusive ? zone.checkFailures : faulty ? zone.checkFailures + 1 : 0;
  const inconclusives = inconclusive ? zone.inconclusives + 1 : 0;
  const status = statusAfterCheck({
    status: zone.status, result: check.result, degrading: check.degrading || (check.serverProblems && zone.serverProblems), claimedElsewhere, misses, firstMissAt, now,
  });
  const attempt = zone.checkAttempt + 1;
  const delayMs = nextCheckDelayMs({ status, result: check.result, attempt, startedAt: zone.ladderStartedAt, failures, inconclusives, now, random: Math.random() });
  const nextCheckAt = new Date(now.getTime() + delayMs);
  const report: Report = { ...check.report, cached: false, nextCheckAt: nextCheckAt.toISOString() };
  const reason = claimedElsewhere && status !== 'active' && (check.result === 'verified' || status === 'moved') ? 'claimed_elsewhere' : inconclusive ? zone.statusReason : check.reason;
  await writeCheck(tx, {
    id: zoneId, status, reason, report, nextCheckAt, attempt, failures, inconclusives, misses, firstMissAt, conclusiveNo,
    serverProblems: inconclusive ? zone.serverProblems : check.serverProblems, misdelegated: inconclusive ? zone.misdelegated : check.misdelegated,
    provenNow: check.provenNow && !(claimedElsewhere && status === 'pending'), seenNameservers: inconclusive ? null : check.seenNameservers,
    cnameCursor: check.cnameCursor,
  });
  if (isHolder(status) && check.result === 'verified') await rememberProof(tx, zone.projectId, zone.domain, zone.customNameservers);
  if (status === 'moved' && zone.status !== 'moved') await rememberProof(tx, zone.projectId, zone.domain, []);
  await follow(tx, deps, zone, { status, misdelegated: inconclusive ? zone.misdelegated : check.misdelegated });
  for (const operation of await openOperationsOf(tx, zoneId, 'dns.verify')) await settleOperation(tx, operation.id, 'succeeded');
  const expiry = inconclusive ? null : expiryReason(deps, { ...zone, status, movedAt: status === 'moved' ? zone.movedAt : null, lastConclusiveNoAt: conclusiveNo ? now : zone.lastConclusiveNoAt }, now);
  if (expiry) await endZone(tx, deps, zone, { cause: systemCause('expireDnsZone'), reason: expiry });
  const changed = await loadZone(tx, zoneId);
  return changed ? { zone: changed, report } : null;
}

/** Why a claim ends now: never proven in its time, or elsewhere for so long. */
function expiryReason(
  { config }: VerificationDeps, zone: { status: ZoneStatus; pendingSince: Date; movedAt: Date | null; lastConclusiveNoAt: Date | null }, now: Date,
): 'unverified' | 'delegated_elsewhere' | null {
  if (zone.status === 'pending' && isExpired(zone, config.DNS_PENDING_DAYS, now)) return 'unverified';
  return hasMovedFor(zone, config.DNS_MOVED_DAYS, now) ? 'delegated_elsewhere' : null;
}

/** Status and holder decide answers: what changes them is a new version of the zone. */
async function follow(tx: Tx, deps: VerificationDeps, zone: ZoneRow, to: { status: ZoneStatus; misdelegated: boolean }): Promise<void> {
  if (to.status === zone.status && to.misdelegated === zone.misdelegated) return;
  if (to.status !== zone.status) {
    await bumpWhole(tx, zone);
    if (isLive(to.status) && !isLive(zone.status)) await markEverLive(tx, zone.projectId, zone.domain);
    audit(tx, zone, systemCause('verifyDnsZone'), to.status);
  }
  await settleClaims(tx, deps.dnsPlatform, zone.registrable, to.status === zone.status ? null : zone.id);
}

function audit(tx: Tx, zone: { id: Id<'zone'>; orgId: Id<'org'>; projectId: Id<'prj'>; status: ZoneStatus }, cause: Cause, to: ZoneStatus): void {
  appendAudit(tx, { orgId: zone.orgId, projectId: zone.projectId, cause, outcome: 'done', target: { type: 'dnsZone', id: zone.id }, changes: [{ field: 'status', from: zone.status, to }] });
}

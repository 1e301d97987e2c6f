import { setTimeout as pause } from 'node:timers/promises';
import type { Cause, ProjectCaller } from '../core/caller';
import type { Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { getOperation, openOperationsOf, settleOperation, type OperationRow } from '../operations/store';
import { requireZone } from './faults';
import type { Report } from './report';
import { readReport, restartLadder } from './store/checks';
import { loadZone, lockZone } from './store/zones';
import { verifyZone, type VerificationDeps, type Verified } from './verification';
import { openVerifyOperation } from './zones';

const pollMs = 150;

/**
 * The zone has a report not older than `freshSeconds`: the one it has, that of a check somebody else is doing, or our own.
 * Gone: deleted meanwhile. Busy: another check did not end within `budgetMs`.
 */
export async function ensureChecked(deps: VerificationDeps, zoneId: string, { freshSeconds, budgetMs }: { freshSeconds: number; budgetMs: number }): Promise<Verified | 'gone' | 'busy'> {
  for (const startedAt = Date.now(); ; await pause(pollMs)) {
    const elapsedMs = Date.now() - startedAt;
    const known = await readReport(deps.db.prisma, zoneId);
    if (!known) return 'gone';
    if (known.report && known.ageSeconds <= freshSeconds + elapsedMs / 1000) return await settled(deps, zoneId, { ...known.report, cached: known.ageSeconds > elapsedMs / 1000 });
    const done = known.checking ? null : await verifyZone(deps, zoneId);
    if (done) return done;
    if (elapsedMs > budgetMs) return 'busy';
  }
}

/** Operations that were opened since the check answers them too are closed: a process that died cannot leave them open. */
async function settled(deps: VerificationDeps, zoneId: string, report: Report): Promise<Verified | 'gone'> {
  for (const operation of await openOperationsOf(deps.db.prisma, zoneId, 'dns.verify')) await settleOperation(deps.db.prisma, operation.id, 'succeeded');
  const zone = await loadZone(deps.db.prisma, zoneId);
  return zone && !zone.deletedAt ? { zone, report } : 'gone';
}

export type Verification = Verified & { operation: OperationRow | null };

/** What the last check said; null before the first. */
export async function getReport(deps: Pick<VerificationDeps, 'db'>, zoneId: string): Promise<Report | null> {
  return (await readReport(deps.db.prisma, zoneId))?.report ?? null;
}

/** A report this young is the answer: nothing is asked again. */
export async function findFreshReport(deps: VerificationDeps, zoneId: string): Promise<Report | null> {
  const known = await readReport(deps.db.prisma, zoneId);
  return known?.report && known.ageSeconds < cachedSeconds ? { ...known.report, cached: true } : null;
}

const cachedSeconds = 10;
const budgetMs = 8_000;

/** The ladder of checks begins anew, and the zone's workflow is woken. Errors: `not_found`. */
export async function requestVerification(tx: Tx, { caller, zoneId, cause }: { caller: ProjectCaller; zoneId: string; cause: Cause }): Promise<OperationRow> {
  const zone = requireZone(await lockZone(tx, caller.project.id, zoneId));
  await restartLadder(tx, zone.id);
  appendAudit(tx, { orgId: zone.orgId, projectId: zone.projectId, cause, outcome: 'done', target: { type: 'dnsZone', id: zone.id } });
  return openVerifyOperation(tx, zone, cause);
}

/**
 * What the check said within its budget; after it the operation goes on and the last report stands. A check that ended after
 * `askedAtMs` answers too: several who ask at once share one. Errors: `not_found`.
 */
export async function awaitVerification(deps: VerificationDeps, zoneId: string, operation: OperationRow, askedAtMs: number): Promise<Verification> {
  const outcome = await ensureChecked(deps, zoneId, { freshSeconds: (Date.now() - askedAtMs) / 1000, budgetMs });
  const zone = requireZone(outcome === 'gone' ? null : await loadZone(deps.db.prisma, zoneId));
  const report = typeof outcome === 'object' ? outcome.report : await lastReport(deps, zoneId, zone.mode === 'external' ? 'txt' : 'nameservers');
  return { zone, report, operation: await getOperation(deps.db.prisma, operation.id) };
}

async function lastReport(deps: VerificationDeps, zoneId: string, method: Report['method']): Promise<Report> {
  const known = await readReport(deps.db.prisma, zoneId);
  return known?.report ? { ...known.report, cached: true } : {
    checkedAt: deps.clock.now().toISOString(), durationMs: budgetMs, cached: false, result: 'inconclusive', method, delegation: null, expected: [], missing: [], unexpected: [],
    servers: [], txt: null, cnames: [], dnssec: { parentDs: [], status: 'insecure' }, nextCheckAt: null,
    problems: [{ code: 'check_running', severity: 'info', message: 'The check has not ended yet.', fix: 'Follow the operation, or ask again in a few seconds.' }],
  };
}

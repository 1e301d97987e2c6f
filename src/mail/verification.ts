import { setTimeout as pause } from 'node:timers/promises';
import { systemCause } from '../core/caller';
import { inTransaction, type Tx } from '../db/transaction';
import { checkDomain, type Check } from './check';
import type { MailDeps } from './deps';
import { auditDomain, settleVerifications } from './domains';
import { recordNotice } from './notices';
import { isPublished, placeRecords } from './publication';
import { afterCheck, nextCheckDelayMs } from './rules/domain-checks';
import { canSend } from './state';
import { dropFormerKeys, promoteKey, readDomainRecords, readKeys, writeFound } from './store/domain-records';
import { listDue, loadDomain, writeCheck, type DomainRow } from './store/domains';

export type VerificationDeps = Pick<MailDeps, 'db' | 'clock' | 'dnsPlatform' | 'dnsResolver' | 'config'>;

const budgetMs = 5_000;
/** POST verify answers within this; the servers of the zone are not asked one by one. */
const askedBudgetMs = 4_500;
const publicationWaitMs = 10_000;
const publicationPollMs = 200;
/** A result this young is the answer. */
const freshMs = 10_000;
/** How long the record of a key that was replaced stays on the list at least. */
const formerKeyMs = 7 * 86_400_000;
const hourMs = 3_600_000;

/**
 * A domain has been checked lately, and its row says what was found; unless it is pending, so have its open verifications ended. Null: it
 * is deleted. The first check waits a little until a hosted zone is published.
 */
export async function ensureDomainChecked(deps: VerificationDeps, domainId: string): Promise<DomainRow | null> {
  const found = await loadDomain(deps.db.prisma, domainId);
  const domain = found && !isOver(found) && !isFresh(found, deps.clock.now()) ? await checkPublished(deps, found) : found;
  if (domain?.status !== 'pending') await inTransaction(deps.db, (tx) => settleVerifications(tx, domainId, verdictOf(domain)));
  return domain;
}

async function checkPublished(deps: VerificationDeps, domain: DomainRow): Promise<DomainRow | null> {
  await waitForPublication(deps, domain);
  return checkNow(deps, domain, { asked: false });
}

function isOver({ status }: DomainRow): boolean {
  return status === 'failed' || status === 'suspended';
}

function isFresh({ lastCheckedAt, awaitVersion }: DomainRow, now: Date): boolean {
  return lastCheckedAt !== null && awaitVersion === null && now.getTime() - lastCheckedAt.getTime() < freshMs;
}

function verdictOf(domain: DomainRow | null): 'succeeded' | 'failed' | 'cancelled' {
  return domain && canSend(domain.status) ? 'succeeded' : domain?.status === 'failed' ? 'failed' : 'cancelled';
}

/** DNS is asked now for a customer who wants to know: the domain may rise by it and never falls. Null when it was deleted meanwhile. */
export function askNow(deps: VerificationDeps, domain: DomainRow): Promise<DomainRow | null> {
  return checkNow(deps, domain, { asked: true });
}

/** Verified and degraded domains that are due have been checked, at most `limit` of them, a few at a time; how many. */
export async function recheckDue(deps: VerificationDeps, limit: number, beat: () => void): Promise<number> {
  const due = await listDue(deps.db.prisma, deps.clock.now(), limit);
  for (let i = 0; i < due.length; i += atOnce) {
    await Promise.all(due.slice(i, i + atOnce).map(async (id) => {
      const domain = await loadDomain(deps.db.prisma, id);
      if (domain) await checkNow(deps, domain, { asked: false });
    }));
    beat();
  }
  return due.length;
}

const atOnce = 10;

async function checkNow(deps: VerificationDeps, domain: DomainRow, { asked }: { asked: boolean }): Promise<DomainRow | null> {
  const records = await readDomainRecords(deps.db.prisma, [domain.id]);
  const check = await checkDomain(deps, domain, { records, budgetMs: asked ? askedBudgetMs : budgetMs, confirm: !asked });
  await inTransaction(deps.db, (tx) => apply(tx, deps, domain, { check, asked }));
  return loadDomain(deps.db.prisma, domain.id);
}

/** Somebody who checked meanwhile has been faster: then nothing is written, and their result stands. */
async function apply(tx: Tx, deps: VerificationDeps, domain: DomainRow, { check, asked }: { check: Check; asked: boolean }): Promise<void> {
  const now = deps.clock.now();
  const change = afterCheck(domain, check.verdict, { now, asked });
  const seen = check.nextKeySeen;
  const rotating = !seen && (await readKeys(tx, domain.id)).some(({ state }) => state === 'next');
  const delayMs = nextCheckDelayMs({ ...domain, ...change }, check.verdict, { now, random: Math.random(), rotating });
  const planned = delayMs === null ? null : new Date(now.getTime() + delayMs);
  const rises = change.status === 'verified' && domain.status !== 'verified';
  const written = await writeCheck(tx, domain, {
    ...change, dmarcPolicy: check.dmarc.known ? check.dmarc.policy : domain.dmarcPolicy, nextCheckAt: asked && check.verdict !== 'ok' ? earlier(planned, domain.nextCheckAt, now) : planned,
    verifiedAt: rises ? now : domain.verifiedAt, degradedAt: change.status === 'degraded' ? domain.degradedAt ?? now : null,
  }, now);
  if (!written) return;
  await writeFound(tx, domain.id, check.found);
  await turnKeys(tx, deps, domain, { seen, now });
  if (change.status !== domain.status) await follow(tx, domain, change.status, change.failureReason);
}

/** Somebody who asks again and again must not put off the check that counts; one that was due has been made by this. */
function earlier(planned: Date | null, before: Date | null, now: Date): Date | null {
  return planned && before && before > now && before < planned ? before : planned;
}

/** A key whose record has been seen signs; those that signed before leave the list in their time. */
async function turnKeys(tx: Tx, deps: VerificationDeps, domain: DomainRow, { seen, now }: { seen: boolean; now: Date }): Promise<void> {
  const listedMs = Math.max(formerKeyMs, deps.config.MAIL_MAX_AGE_HOURS * hourMs); // what it signed first, it signs as long as it is tried
  if (seen) await promoteKey(tx, domain.id, new Date(now.getTime() + listedMs));
  const dropped = await dropFormerKeys(tx, domain.id, now);
  if (seen || dropped > 0) await placeRecords(tx, deps, domain);
}

async function follow(tx: Tx, domain: DomainRow, status: DomainRow['status'], failureReason: DomainRow['failureReason']): Promise<void> {
  if (status === 'verified') await settleVerifications(tx, domain.id, 'succeeded');
  if (status === 'failed') await settleVerifications(tx, domain.id, 'failed');
  if (status === 'verified' || status === 'degraded' || status === 'failed') {
    await recordNotice(tx, { mailServiceId: domain.mailServiceId, type: `domain.${status}`, status, facts: { domainId: domain.id, domain: domain.domain, failureReason } });
  }
  auditDomain(tx, domain, systemCause('verifyMailDomain'), [{ field: 'status', from: domain.status, to: status }]);
}

async function waitForPublication({ db }: VerificationDeps, domain: DomainRow): Promise<void> {
  for (const startedAt = Date.now(); Date.now() - startedAt < publicationWaitMs; await pause(publicationPollMs)) {
    if (await isPublished(db.prisma, domain)) return;
  }
}

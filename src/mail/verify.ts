import type { Cause } from '../core/caller';
import { AppError } from '../core/errors';
import { inTransaction, type Tx } from '../db/transaction';
import type { OperationRow } from '../operations/store';
import type { MailDeps } from './deps';
import { auditDomain, openVerification, requireDomain } from './domains';
import { windowMs } from './rules/domain-checks';
import { loadDomain, reopenWindow, type DomainRow } from './store/domains';
import { askNow, type VerificationDeps } from './verification';

const rate = { name: 'mail-verify', limit: 1, periodSeconds: 10 };

/**
 * POST verify, first half: DNS is asked, once in 10 s for a domain, outside any transaction; else what is stored is the answer.
 * A failed domain gets a new window first. Works without Temporal. Errors: `not_found` for a domain deleted meanwhile.
 */
export async function verifyLive(deps: VerificationDeps & Pick<MailDeps, 'limiter'>, domainId: string): Promise<{ live: boolean; durationMs: number | null }> {
  const now = deps.clock.now();
  await inTransaction(deps.db, (tx) => reopenWindow(tx, domainId, { now, deadline: new Date(now.getTime() + windowMs), from: 'failed' }));
  const domain = requireDomain(await loadDomain(deps.db.prisma, domainId));
  if (domain.status === 'suspended' || !await mayAsk(deps, domainId)) return { live: false, durationMs: null };
  const startedAt = Date.now();
  requireDomain(await askNow(deps, domain));
  return { live: true, durationMs: Date.now() - startedAt };
}

async function mayAsk({ limiter }: Pick<MailDeps, 'limiter'>, domainId: string): Promise<boolean> {
  try {
    await limiter.take(rate, domainId);
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'rate_limited') return false;
    throw error;
  }
}

/** Second half: a domain that is still pending is checked on, by a run that checks now. */
export async function followVerification(tx: Tx, { domainId, cause }: { domainId: string; cause: Cause }): Promise<{ domain: DomainRow; operation: OperationRow | null }> {
  const domain = requireDomain(await loadDomain(tx, domainId));
  const operation = domain.status === 'pending' ? await openVerification(tx, domain, cause) : null;
  auditDomain(tx, domain, cause, [{ field: 'status', from: domain.status, to: domain.status }]);
  return { domain, operation };
}

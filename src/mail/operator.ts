import { isId } from '../core/ids';
import { systemCause } from '../core/caller';
import type { Clock } from '../core/clock';
import type { Database } from '../db/client';
import { inTransaction } from '../db/transaction';
import { auditDomain, openVerification, settleVerifications } from './domains';
import { windowMs } from './rules/domain-checks';
import { lockDomain, reopenWindow, setDomainSuspended } from './store/domains';
import { resumeService, suspendService } from './suspension';

type Deps = { db: Database; clock: Clock };

/** What an operator suspends sends nothing until an operator resumes it. False: there is no such service or domain, or it was suspended. */
export function suspendByOperator({ db }: Deps, id: string): Promise<boolean> {
  return inTransaction(db, async (tx) => {
    const cause = systemCause('mail:suspend');
    if (!isId('dom', id)) return suspendService(tx, id, 'admin', cause);
    const domain = await lockDomain(tx, id);
    if (!domain || !await setDomainSuspended(tx, id)) return false;
    await settleVerifications(tx, id, 'cancelled');
    auditDomain(tx, domain, cause, [{ field: 'status', from: domain.status, to: 'suspended' }]);
    return true;
  });
}

/** A suspended service is active, whatever the reason was; a suspended domain is checked anew. False: there is none, or it was not suspended. */
export function resumeByOperator({ db, clock }: Deps, id: string): Promise<boolean> {
  return inTransaction(db, async (tx) => {
    const cause = systemCause('mail:resume');
    if (!isId('dom', id)) return resumeService(tx, id, null, cause);
    const domain = await lockDomain(tx, id);
    const now = clock.now();
    if (!domain || !await reopenWindow(tx, id, { now, deadline: new Date(now.getTime() + windowMs), from: 'suspended' })) return false;
    await openVerification(tx, domain, cause);
    auditDomain(tx, domain, cause, [{ field: 'status', from: 'suspended', to: 'pending' }]);
    return true;
  });
}

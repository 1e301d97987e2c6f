import type { Config } from '../config';
import { systemCause } from '../core/caller';
import type { Database } from '../db/client';
import { inTransaction, type Tx } from '../db/transaction';
import { appendAudit, tellOwners, type AuditChange } from '../identity/service';
import { acceptChange } from './changes';
import { acceptDeletion } from './deletion';
import { listTrialsDue, setTrialEnded, setTrialNotice, type TrialStep } from './store/lifecycle';
import { lockAnyService, type ServiceRow } from './store/services';

type TrialDeps = { db: Database; config: Pick<Config, 'ACCOUNT_MAIL'> };
export type TrialsAdvanced = { noticed: number; suspended: number; deleted: number };

const pageMax = 200;
const cause = systemCause('advancePostgresLifecycle');

/** Owners know of the end of their trials, what has ended is suspended, and deleted after its seven days. Safe at any time; a rest waits for the next run. */
export async function advanceTrials(deps: TrialDeps, beat: () => void): Promise<TrialsAdvanced> {
  const done = { noticed: 0, suspended: 0, deleted: 0 };
  for (const { id, step, days } of await listTrialsDue(deps.db.prisma, pageMax)) {
    beat();
    if (await inTransaction(deps.db, (tx) => take(tx, deps, { id, step, days }))) done[counts[step]] += 1;
  }
  return done;
}

const counts = { notice: 'noticed', suspend: 'suspended', relabel: 'suspended', delete: 'deleted' } as const satisfies Record<TrialStep, keyof TrialsAdvanced>;

/** False when it is not due any more: a plan was chosen, or it was deleted. */
async function take(tx: Tx, { config }: TrialDeps, { id, step, days }: { id: string; step: TrialStep; days: number }): Promise<boolean> {
  const service = await lockAnyService(tx, id);
  if (!service?.trialExpiresAt) return false;
  const tell = () => tellOwners(tx, config, { orgId: service.orgId, kind: 'postgres_trial', facts: { name: service.displayName, days: String(days) } });
  switch (step) {
    case 'notice':
      if (!await setTrialNotice(tx, id, days)) return false;
      audit(tx, service, [{ field: 'trialNoticeDays', from: null, to: days }]);
      await tell();
      return true;
    case 'suspend':
      if (service.status !== 'available') return false;
      await acceptChange(tx, service, { change: 'suspend', reason: 'trial_expired', cause });
      await tell();
      return true;
    case 'relabel':
      if (!await setTrialEnded(tx, id)) return false;
      audit(tx, service, [{ field: 'statusReason', from: service.statusReason, to: 'trial_expired' }]);
      await tell();
      return true;
    case 'delete':
      if (service.status !== 'suspended' || service.statusReason !== 'trial_expired') return false;
      await acceptDeletion(tx, service, false, cause);
      return true;
  }
}

function audit(tx: Tx, { id, orgId, projectId }: ServiceRow, changes: AuditChange[]): void {
  appendAudit(tx, { orgId, projectId, cause, outcome: 'done', target: { type: 'postgresService', id }, changes });
}

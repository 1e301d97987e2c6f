import { systemCause } from '../core/caller';
import type { ReconcileRule } from '../operations/reconcile';
import { openVerification } from './domains';
import { openDeletion } from './service-deletion';
import { listUnchecked } from './store/domains';
import { listGoing } from './store/services';

const overdueMinutes = 10;

/** A pending domain whose check is overdue has no run that would do it: it is given one. Domains have no deadline to miss. */
export const domainReconcileRule: ReconcileRule = {
  name: 'mail-domain',
  findOverdue: async () => [],
  async reopen(tx, limit) {
    const opened = [];
    for (const domain of await listUnchecked(tx, limit)) opened.push(await openVerification(tx, domain, systemCause('reconcile')));
    return opened;
  },
};

/** A service that has been deleting for long is raised as an alert, and started again where its operation was lost. */
export const serviceReconcileRule: ReconcileRule = {
  name: 'mail-service',
  findOverdue: async (db, limit) => (await listGoing(db, { olderThanMinutes: overdueMinutes, orphaned: false, limit })).map(({ id, orgId, projectId, deletedAt }) => ({
    orgId, projectId, target: { type: 'mailService', id }, status: 'deleting', deadlineAt: new Date(deletedAt.getTime() + overdueMinutes * 60_000),
  })),
  async reopen(tx, limit) {
    const opened = [];
    for (const service of await listGoing(tx, { olderThanMinutes: overdueMinutes, orphaned: true, limit })) opened.push(await openDeletion(tx, service, systemCause('reconcile')));
    return opened;
  },
};

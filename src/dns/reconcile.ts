import { systemCause } from '../core/caller';
import type { ReconcileRule } from '../operations/reconcile';
import { listUnchecked } from './store/checks';
import { openVerifyOperation } from './zones';

/** A zone whose check is overdue has no run that would do it: it is given one. Zones have no deadline to miss. */
export const dnsReconcileRule: ReconcileRule = {
  name: 'dns-zone',
  findOverdue: async () => [],
  async reopen(tx, limit) {
    const opened = [];
    for (const zone of await listUnchecked(tx, limit)) opened.push(await openVerifyOperation(tx, zone, systemCause('reconcile')));
    return opened;
  },
};

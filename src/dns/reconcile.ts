import { systemCause } from '../core/caller';
import type { OperationRow } from '../operations/store';
import type { ReconcileRule } from '../operations/reconcile';
import { openPurgeOperation } from './retention';
import { listUnchecked } from './store/checks';
import { listPurgeable } from './store/retention';
import { listUnsynced } from './store/sync';
import { openSyncOperation } from './sync';
import { openVerifyOperation } from './zones';

/**
 * Zones that nobody works on and somebody should are given a run: one whose check is overdue, one whose publication was given
 * up, one whose time to be restored is over. Zones have no deadline to miss.
 */
export const dnsReconcileRule: ReconcileRule = {
  name: 'dns-zone',
  findOverdue: async () => [],
  async reopen(tx, limit) {
    const cause = systemCause('reconcile');
    const opened: OperationRow[] = [];
    for (const zone of await listUnchecked(tx, limit)) opened.push(await openVerifyOperation(tx, zone, cause));
    for (const zone of await listUnsynced(tx, limit)) opened.push(await openSyncOperation(tx, zone, cause));
    for (const zone of await listPurgeable(tx, limit)) opened.push(await openPurgeOperation(tx, zone));
    return opened;
  },
};

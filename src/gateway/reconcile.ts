import { systemCause } from '../core/caller';
import type { OperationRow } from '../operations/store';
import type { ReconcileRule } from '../operations/reconcile';
import { openCertificateOperation } from './certificates';
import { listAbandonedCertificates } from './store/certificates';

/** Orders that began more than ten minutes ago and that nobody works on are given a run. An old chain serves meanwhile, so nothing is overdue. */
export const certificateReconcileRule: ReconcileRule = {
  name: 'gateway-certificate',
  findOverdue: async () => [],
  async reopen(tx, limit) {
    const opened: OperationRow[] = [];
    for (const certificate of await listAbandonedCertificates(tx, limit)) opened.push(await openCertificateOperation(tx, certificate, systemCause('reconcile')));
    return opened;
  },
};

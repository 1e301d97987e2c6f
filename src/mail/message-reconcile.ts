import type { ReconcileRule } from '../operations/reconcile';
import { rematchPage } from './provider-events';
import { redispatchLost } from './store/dispatch';

/** A message whose attempt is ten minutes overdue has no run that would make it: it waits for one again. */
export const messageReconcileRule: ReconcileRule = {
  name: 'mail-message',
  findOverdue: async () => [],
  async reopen(tx, limit) {
    await redispatchLost(tx, limit);
    return [];
  },
};

/** Events that came before their message was known are matched again. */
export const eventReconcileRule: ReconcileRule = {
  name: 'mail-event',
  findOverdue: async () => [],
  async reopen(tx, limit) {
    for (let after: Date | null = null; ;) {
      const { last, count } = await rematchPage(tx, after, limit);
      if (count < limit || last === null) return [];
      after = last;
    }
  },
};

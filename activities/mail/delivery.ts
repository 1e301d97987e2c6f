import { cancellationSignal, heartbeat, activityInfo } from '@temporalio/activity';
import { attemptMessages, type DeliveryDeps } from '../../src/mail/service';

export type DeliveryActivityDeps = DeliveryDeps;
export type DeliveryActivities = ReturnType<typeof createDeliveryActivities>;
/** `rounds` and `startedAt` (ms) are of the runs before, when a run continues as a new one. */
export type MessageRun = { messageId: string; rounds?: number; startedAt?: number };
export type BatchRun = { messageIds: readonly string[] };
export type Progress = { messageId: string; settled: boolean; nextAttemptAt: string | null };

const beatMs = 5_000;
/** No new recipient after this long of the 10 minutes an activity has. */
const stopMs = 8 * 60_000;
/** Attempts under way may end after a cancellation; then they are cut. The worker itself waits 25 s. */
const cutAfterMs = 20_000;

/** Activities on the queue `mail-delivery`. */
export function createDeliveryActivities(deps: DeliveryActivityDeps) {
  return {
    /** Every due recipient of these messages was tried once, and its result is durable. Answers what is left, by message. */
    async attemptMessages({ messageIds }: BatchRun): Promise<Progress[]> {
      const cut = new AbortController();
      const cancelled = cancellationSignal();
      cancelled.addEventListener('abort', () => setTimeout(() => cut.abort(), cutAfterMs).unref(), { once: true });
      const beating = setInterval(() => heartbeat(), beatMs);
      try {
        const progress = await attemptMessages(deps, {
          messageIds, workflowId: activityInfo().workflowExecution?.workflowId ?? 'unknown', stop: AbortSignal.any([cancelled, AbortSignal.timeout(stopMs)]), cut: cut.signal,
        });
        return progress.map(({ messageId, settled, nextAttemptAt }) => ({ messageId, settled, nextAttemptAt: nextAttemptAt?.toISOString() ?? null }));
      } finally {
        clearInterval(beating);
      }
    },
  };
}

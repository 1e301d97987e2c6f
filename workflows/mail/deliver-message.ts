import { ActivityFailure, ApplicationFailure, condition, continueAsNew, defineQuery, defineSignal, isCancellation, proxyActivities, setCurrentDetails, setHandler, workflowInfo } from '@temporalio/workflow';
import type { DeliveryActivities, MessageRun } from '../../activities/mail/delivery';
import { attempting } from '../policies';

/** Something changed about the message: look at once. */
export const wake = defineSignal('wake');
export type DeliveryProgress = { rounds: number; settled: boolean; nextAttemptAt: string | null };
export const progress = defineQuery<DeliveryProgress>('progress');

const { attemptMessages } = proxyActivities<DeliveryActivities>(attempting);
const hourMs = 3_600_000;
/** Where nobody could say when to come again: the worker or the database was away for an hour. */
const pauseMs = 5 * 60_000;
/** A recipient held by an attempt that is not ours is looked at again after this long at the earliest. */
const pauseMinMs = 1_000;
/** Longer than any message lives (MAIL_MAX_AGE_HOURS is at most 720). */
const longestMs = 721 * hourMs;

/** Every recipient of a message has an outcome: tries, waits as long as the rows say, and tries again until all are settled. */
export async function deliverMessage(run: MessageRun): Promise<{ rounds: number }> {
  const startedAt = run.startedAt ?? workflowInfo().startTime.getTime();
  const seen: DeliveryProgress = { rounds: run.rounds ?? 0, settled: false, nextAttemptAt: null };
  let wakes = 0;
  setHandler(progress, () => seen);
  setHandler(wake, () => {
    wakes += 1;
  });
  for (;;) {
    const heard = wakes;
    setCurrentDetails(`Trying for the ${seen.rounds + 1}. time`);
    const { settled, nextAttemptAt } = await attempt(run.messageId);
    Object.assign(seen, { rounds: seen.rounds + 1, settled, nextAttemptAt });
    if (settled) break;
    if (Date.now() - startedAt > longestMs) throw ApplicationFailure.nonRetryable('The message is older than any may become.', 'deadline_exceeded');
    const waitMs = nextAttemptAt === null ? pauseMs : Math.max(pauseMinMs, Date.parse(nextAttemptAt) - Date.now());
    setCurrentDetails(`The next attempt is planned in ${Math.round(waitMs / 1_000)} s`);
    await condition(() => wakes > heard, waitMs);
    if (workflowInfo().continueAsNewSuggested) return continueAsNew<typeof deliverMessage>({ messageId: run.messageId, rounds: seen.rounds, startedAt });
  }
  setCurrentDetails('Every recipient has an outcome');
  return { rounds: seen.rounds };
}

async function attempt(messageId: string): Promise<{ settled: boolean; nextAttemptAt: string | null }> {
  try {
    const [found] = await attemptMessages({ messageIds: [messageId] });
    return found ?? { settled: true, nextAttemptAt: null };
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return { settled: false, nextAttemptAt: null };
  }
}

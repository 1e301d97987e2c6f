import { ActivityFailure, isCancellation, ParentClosePolicy, proxyActivities, setCurrentDetails, startChild } from '@temporalio/workflow';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import type { BatchRun, DeliveryActivities } from '../../activities/mail/delivery';
import { workflowIds } from '../../src/temporal/ids';
import { attempting } from '../policies';
import { deliverMessage } from './deliver-message';

const { attemptMessages } = proxyActivities<DeliveryActivities>(attempting);

/** The first attempt at up to 50 messages in one activity; what is not settled then has a run of its own. */
export async function deliverBatch({ messageIds }: BatchRun): Promise<{ settled: number; handedOn: number }> {
  setCurrentDetails(`Trying ${messageIds.length} messages`);
  const left = await attempt(messageIds);
  for (const messageId of left) {
    try {
      await startChild(deliverMessage, { workflowId: workflowIds.deliverMessage(messageId), args: [{ messageId }], parentClosePolicy: ParentClosePolicy.ABANDON });
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  }
  setCurrentDetails(`Settled: ${messageIds.length - left.length}. With a run of their own: ${left.length}.`);
  return { settled: messageIds.length - left.length, handedOn: left.length };
}

/** All of them when the activity finally failed: the rows know how far it came. */
async function attempt(messageIds: readonly string[]): Promise<string[]> {
  try {
    const found = await attemptMessages({ messageIds });
    return found.filter(({ settled }) => !settled).map(({ messageId }) => messageId);
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return [...messageIds];
  }
}

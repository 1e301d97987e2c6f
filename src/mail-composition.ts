import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { CoreDeps } from './deps';
import {
  createAcceptWriter, createMailStarts, createPendingMail, createRefusalAlert, createResultWriter, createSigningKeys, noteQuota, type DeliveryDeps, type SendDeps, type StartBatch, type StartDelivery,
} from './mail/service';
import type { Temporal } from './temporal/connection';
import { workflowIds } from './temporal/ids';
import { startOptions } from './temporal/options';
import { searchAttributes } from './temporal/search-attributes';

/** The part of deps.ts that accepts and delivers mail. */
export type MailSending = Pick<SendDeps, 'acceptWriter' | 'pendingMail' | 'mailStarts'> & { wakeDelivery(messageId: string): void };

export function openMailSending({ db, log, metrics, config }: CoreDeps, temporal: Temporal): MailSending {
  return {
    acceptWriter: createAcceptWriter({
      db, quotaNear: (serviceIds) => void noteQuota(db, serviceIds).catch((error: unknown) => log.warn({ err: error }, 'nobody was told of a quota that comes to its end')),
    }),
    pendingMail: createPendingMail(db, { countMax: config.PENDING_OPERATIONS_MAX, ageSecondsMax: config.PENDING_OPERATIONS_AGE_SECONDS }),
    mailStarts: createMailStarts({ db, log, metrics, start: startDeliveryOf(temporal), perSecond: config.MAIL_API_STARTS_PER_SECOND }),
    wakeDelivery: (messageId) => void temporal.within(startOptions.deadlineMs, () => temporal.client.workflow.getHandle(workflowIds.deliverMessage(messageId)).signal('wake'))
      .catch(() => log.debug({ messageId }, 'no run of the message was woken')),
  };
}

export function openMailDelivery({ db, log, metrics, config, secrets }: CoreDeps): Omit<DeliveryDeps, 'db' | 'log' | 'config' | 'mailTransports'> {
  const attempts = { running: 0 };
  return { attempts, alertRefusal: createRefusalAlert({ log, metrics }), signingKey: createSigningKeys({ db, secrets }), resultWriter: createResultWriter({ db, log, config }, () => attempts.running) };
}

/** A message of its own goes before batches: somebody waits for it. */
const singlePriority = 2;
const batchPriority = 4;

export function startDeliveryOf(temporal: Temporal): StartDelivery {
  return async ({ id, orgId, projectId }) => {
    await temporal.within(startOptions.deadlineMs, () => temporal.client.workflow.start('deliverMessage', {
      workflowId: workflowIds.deliverMessage(id), taskQueue: 'mail-delivery', args: [{ messageId: id }], workflowIdConflictPolicy: 'USE_EXISTING', workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      typedSearchAttributes: searchAttributes({ product: 'mail', orgId, projectId, resourceId: id }), staticSummary: 'Deliver a message',
      priority: { priorityKey: singlePriority, fairnessKey: orgId },
    }));
  };
}

export function startBatchOf(temporal: Temporal): StartBatch {
  return async (messageIds) => {
    try {
      await temporal.within(startOptions.deadlineMs, () => temporal.client.workflow.start('deliverBatch', {
        workflowId: workflowIds.deliverBatch(messageIds[0] ?? ''), taskQueue: 'mail-delivery', args: [{ messageIds }], workflowIdConflictPolicy: 'FAIL', workflowIdReusePolicy: 'REJECT_DUPLICATE',
        typedSearchAttributes: searchAttributes({ product: 'mail' }), staticSummary: `Deliver ${messageIds.length} messages`, priority: { priorityKey: batchPriority },
      }));
      return 'started';
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return 'taken';
      throw error;
    }
  };
}

import type { Database } from '../../db/client';
import { inTransaction } from '../../db/transaction';
import { toldOf, writeChanges, type Change } from '../changes';
import type { RecipientRow } from '../rules/recipients';
import type { StatusReason } from '../state';
import { lockMessages, type LockedMessage } from '../store/changes';
import { activeSuppressions, readSendingGrounds, type ActiveSuppression, type SendingGrounds } from '../store/claim';
import { dueRecipients, recipientsOfMessages } from '../store/recipients';

/** A lease is this long, and is renewed while its attempt is heard of. */
export const leaseSeconds = 120;
const suspendedWaitMs = 15 * 60_000;

/** A recipient this run may try once: nobody else does while the lease lasts, and only this fence may write its result. */
export type Claimed = { recipient: RecipientRow; before: RecipientRow; message: LockedMessage; returnPath: string | null };

/**
 * Step 1 of attemptMessages (contract mail.md §5): of these messages up to `limit` due recipients are decided in one
 * transaction. Some end here: cancelled, expired, suppressed, without a domain; the others are taken for an attempt.
 */
export async function claimDue(database: Pick<Database, 'pool'>, messageIds: readonly string[], { limit, workflowId }: { limit: number; workflowId: string }): Promise<{ claimed: Claimed[]; decided: number }> {
  return inTransaction(database, async (tx) => {
    const messages = await lockMessages(tx, messageIds);
    const due = await dueRecipients(tx, [...messages.keys()], limit);
    if (due.length === 0) return { claimed: [], decided: 0 };
    const grounds = new Map((await readSendingGrounds(tx, [...new Set(due.map(({ messageId }) => messageId))])).map((one) => [one.messageId, one]));
    const suppressions = new Map((await activeSuppressions(tx, due)).map((one) => [`${one.mailServiceId} ${one.addressKey}`, one]));
    const claimed: Claimed[] = [];
    const changes = due.flatMap((recipient): Change[] => {
      const message = messages.get(recipient.messageId);
      const ground = grounds.get(recipient.messageId);
      if (!message || !ground) return [];
      const change = decide({ recipient, message, ground, suppression: suppressions.get(`${recipient.mailServiceId} ${recipient.addressKey}`) ?? null });
      if (change.after.status === 'sending') claimed.push({ recipient: change.after, before: recipient, message, returnPath: ground.returnPath });
      return [change];
    });
    await writeChanges(tx, changes, { workflowId, selectors: new Map(claimed.map(({ message: { id } }) => [id, grounds.get(id)?.selector ?? null])) });
    return { claimed, decided: due.length };
  });
}

/** Recipients that were taken and not begun wait again as before, as if nobody had taken them. */
export async function giveBack(database: Pick<Database, 'pool'>, claimed: readonly Claimed[]): Promise<void> {
  await inTransaction(database, async (tx) => {
    const messages = await lockMessages(tx, [...new Set(claimed.map(({ message }) => message.id))]);
    const rows = new Map((await recipientsOfMessages(tx, [...messages.keys()])).map((row) => [row.id, row]));
    await writeChanges(tx, claimed.flatMap(({ recipient, before }): Change[] => {
      const row = rows.get(recipient.id);
      const message = messages.get(recipient.messageId);
      if (!row || !message || row.fence !== recipient.fence || row.status !== 'sending') return [];
      const status = before.status === 'sending' ? 'deferred' : before.status;
      return [{ message, before: row, after: { ...row, status, attemptNo: row.attemptNo - 1, leaseUntil: null, nextAttemptAt: message.now, lastAttemptAt: before.lastAttemptAt }, told: [] }];
    }));
  });
}

type Case = { recipient: RecipientRow; message: LockedMessage; ground: SendingGrounds; suppression: ActiveSuppression | null };

/** One that another run held and was not heard of again is told as interrupted first: it may have been sent. */
export function decide({ recipient, message, ground, suppression }: Case): Change {
  const { now } = message;
  const told = recipient.status === 'sending' ? [toldOf({ ...recipient, smtpCode: null, enhancedCode: null, diagnostic: null }, 'interrupted', now)] : [];
  const idle = { ...recipient, leaseUntil: null, nextAttemptAt: null };
  const end = (status: 'cancelled' | 'failed' | 'suppressed', statusReason: StatusReason | null): Change => {
    const after = { ...idle, status, statusReason };
    return { message, before: recipient, after, told: [...told, toldOf(after, status, now)] };
  };
  if (ground.serviceStatus === 'deleting' || ground.serviceStatus === 'removed') return end('cancelled', 'service_deleted');
  if (message.cancelRequested) return end('cancelled', null);
  if (message.expiresAt <= now) return end('failed', 'expired');
  if (suppression) return recipient.status === 'sending' ? deferUntilKnown() : end('suppressed', `suppressed_${suppression.reason}`);
  if (!ground.canSend) return end('failed', 'domain_not_verified');
  if (ground.serviceStatus === 'suspended') {
    const nextAttemptAt = new Date(now.getTime() + suspendedWaitMs);
    if (nextAttemptAt > message.expiresAt) return end('failed', 'expired');
    const after = { ...idle, status: 'deferred' as const, nextAttemptAt };
    return { message, before: recipient, after, told: [...told, toldOf({ ...after, smtpCode: null, enhancedCode: null, diagnostic: 'the mail service is suspended' }, 'deferred', now)] };
  }
  const after = {
    ...idle, status: 'sending' as const, attemptNo: recipient.attemptNo + 1, fence: recipient.fence + 1, lastAttemptAt: now, leaseUntil: new Date(now.getTime() + leaseSeconds * 1_000),
  };
  return { message, before: recipient, after, told };

  /** The table of states has no way from sending to suppressed: the lost attempt ends as deferred, and the next look suppresses. */
  function deferUntilKnown(): Change {
    return { message, before: recipient, after: { ...idle, status: 'deferred', nextAttemptAt: now }, told };
  }
}

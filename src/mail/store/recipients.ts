import { rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { RecipientRow, RecipientState } from '../rules/recipients';

export type { RecipientRow, RecipientState } from '../rules/recipients';

const columnOf = {
  status: 'status', statusReason: 'status_reason', retryOwner: 'retry_owner', attemptNo: 'attempt_no', fence: 'fence', leaseUntil: 'lease_until',
  nextAttemptAt: 'next_attempt_at', lastAttemptAt: 'last_attempt_at', factAt: 'fact_at', factEventId: 'fact_event_id', mxHost: 'mx_host', tls: 'tls',
  smtpCode: 'smtp_code', enhancedCode: 'enhanced_code', diagnostic: 'diagnostic', deliveredAt: 'delivered_at', bounceClass: 'bounce_class',
  bounceSubType: 'bounce_sub_type', complainedAt: 'complained_at', feedbackType: 'feedback_type', provider: 'provider', providerMessageId: 'provider_message_id',
} as const satisfies Record<keyof RecipientState, string>;

export const recipientColumns = `r.id, r.message_id as "messageId", r.mail_service_id as "mailServiceId", r.position, r.kind, r.address, r.address_key as "addressKey",
  ${Object.entries(columnOf).map(([name, column]) => `r.${column} as "${name}"`).join(', ')}`;

/** Recipients of messages that the transaction has locked, in their order. */
export function recipientsOfMessages(tx: Tx, messageIds: readonly string[]): Promise<RecipientRow[]> {
  return rows<RecipientRow>(tx, `select ${recipientColumns} from mail_recipient r where r.message_id = any($1::text[]) order by r.message_id, r.position`, messageIds);
}

/** Those an attempt is due for: queued, deferred with the retry ours, or held by an attempt that has not been heard of. */
export function dueRecipients(tx: Tx, messageIds: readonly string[], limit: number): Promise<RecipientRow[]> {
  return rows<RecipientRow>(tx, `
    select ${recipientColumns} from mail_recipient r where r.message_id = any($1::text[])
      and (r.status in ('queued', 'deferred') and r.retry_owner = 'us' and r.next_attempt_at <= now() or r.status = 'sending' and r.lease_until <= now())
    order by r.position, r.message_id limit $2::int`, messageIds, limit);
}

const writeStatement = `
  update mail_recipient r set ${Object.entries(columnOf).map(([name, column]) => `${column} = v."${name}"`).join(', ')}, updated_at = now()
  from json_to_recordset($1::json) as v (id text, status text, "statusReason" text, "retryOwner" text, "attemptNo" int, fence int, "leaseUntil" timestamptz,
    "nextAttemptAt" timestamptz, "lastAttemptAt" timestamptz, "factAt" timestamptz, "factEventId" text, "mxHost" text, tls text, "smtpCode" int, "enhancedCode" text,
    diagnostic text, "deliveredAt" timestamptz, "bounceClass" text, "bounceSubType" text, "complainedAt" timestamptz, "feedbackType" text, provider text, "providerMessageId" text)
  where r.id = v.id`;

/** The rows are as given; the transaction holds their messages. */
export async function writeRecipients(tx: Tx, changed: readonly RecipientRow[]): Promise<void> {
  if (changed.length === 0) return;
  await rows(tx, writeStatement, JSON.stringify(changed));
}

/** Leases of attempts that still run are prolonged; one that another run has taken over is not. */
export async function renewLeases(db: Db, held: readonly { id: string; fence: number }[], leaseSeconds: number): Promise<void> {
  await rows(db, `
    update mail_recipient r set lease_until = now() + $3::int * interval '1 second' from unnest($1::text[], $2::int[]) as h (id, fence)
    where r.id = h.id and r.fence = h.fence and r.status = 'sending'`, held.map(({ id }) => id), held.map(({ fence }) => fence), leaseSeconds);
}

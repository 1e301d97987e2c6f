import type { PageKey } from '../../core/cursor';
import { rows, type Db } from '../../db/client';
import type { RecipientRow } from '../rules/recipients';
import type { messageEventTypes, RecipientStatus, StatusReason } from '../state';
import type { MessageParties } from './claim';
import { recipientColumns } from './recipients';

export type MessageRow = {
  id: string; mailServiceId: string; apiKeyId: string; mode: 'live' | 'test'; transport: 'capture' | 'smtp_relay' | 'direct_mx' | 'resend' | 'mailgun'; status: RecipientStatus;
  statusReason: StatusReason | null; parties: MessageParties; subject: string; metadata: Record<string, unknown> | null; hasText: boolean; hasHtml: boolean; sizeBytes: number;
  rfcMessageId: string; counts: Partial<Record<RecipientStatus, number>>; firstAttemptAt: Date | null; settledAt: Date | null; expiresAt: Date; createdAt: Date; updatedAt: Date;
};

const columns = `m.id, m.mail_service_id as "mailServiceId", m.api_key_id as "apiKeyId", m.mode, m.transport, m.status, m.status_reason as "statusReason", m.parties, m.subject, m.metadata,
  m.has_text as "hasText", m.has_html as "hasHtml", m.size_bytes as "sizeBytes", m.rfc_message_id as "rfcMessageId", m.counts, m.first_attempt_at as "firstAttemptAt",
  m.settled_at as "settledAt", m.expires_at as "expiresAt", m.created_at as "createdAt", m.updated_at as "updatedAt"`;

/** Whoever asks: the project of a session, or the service of a key. */
export type MessageScope = { projectId: string } | { serviceId: string };

/** Null for what is absent, foreign, or of a service that is being deleted. */
export async function findMessage(db: Db, scope: MessageScope, messageId: string): Promise<MessageRow | null> {
  const [row] = await rows<MessageRow>(db, `
    select ${columns} from mail_message m join mail_service s on s.id = m.mail_service_id and s.deleted_at is null
    where m.id = $1 and ($2::text is null or s.project_id = $2) and ($3::text is null or s.id = $3)`,
  messageId, 'projectId' in scope ? scope.projectId : null, 'serviceId' in scope ? scope.serviceId : null);
  return row ?? null;
}

export type ShownRecipient = RecipientRow & { createdAt: Date; updatedAt: Date };

export function readRecipients(db: Db, messageId: string): Promise<ShownRecipient[]> {
  return rows<ShownRecipient>(db, `select ${recipientColumns}, r.created_at as "createdAt", r.updated_at as "updatedAt" from mail_recipient r where r.message_id = $1 order by r.position`, messageId);
}

export type StoredEvent = {
  id: string; type: (typeof messageEventTypes)[number]; recipientId: string; recipient: string; attempt: number | null; sequence: number; applied: boolean; source: string;
  smtpCode: number | null; enhancedCode: string | null; diagnostic: string | null; occurredAt: Date; receivedAt: Date;
};

/** The newest `limit` events, oldest first. */
export async function readEvents(db: Db, messageId: string, limit: number): Promise<StoredEvent[]> {
  const newest = await rows<StoredEvent>(db, `
    select id, type, recipient_id as "recipientId", recipient, attempt, sequence, applied, source, smtp_code as "smtpCode", enhanced_code as "enhancedCode", diagnostic,
      occurred_at as "occurredAt", received_at as "receivedAt"
    from mail_event where message_id = $1 order by sequence desc limit $2::int`, messageId, limit);
  return newest.toReversed();
}

export type Content = { text: string | null; html: string | null; mime: Buffer | null };

/** What is still kept of a message's bodies; `mime` of captured mail. */
export async function readContent(db: Db, messageId: string): Promise<Content> {
  const [row] = await rows<Content>(db, `
    select c.text_body as text, c.html_body as html, k.mime from (select 1) one left join mail_content c on c.message_id = $1 left join mail_capture k on k.message_id = $1`, messageId);
  return row ?? { text: null, html: null, mime: null };
}

export type MessageFilter = { serviceId: string; statuses: readonly RecipientStatus[] | null; addressKey: string | null; since: Date | null; until: Date | null; mode: 'live' | 'test' | null };

/** Up to here the messages of one address are fetched and sorted; an address with more of them is met often enough on the way through the list. */
const ofAddressMax = 5_000;

/** A keyset page, newest first; one range of an index per status, so that a rare one is found as fast as a common one. */
export async function listMessages(db: Db, filter: MessageFilter, page: { after: PageKey | null; limit: number }): Promise<MessageRow[]> {
  const values: unknown[] = [filter.serviceId];
  const value = (given: unknown) => `$${values.push(given)}`;
  const conditions = ['m.mail_service_id = $1'];
  if (page.after) conditions.push(`(m.created_at, m.id) < (${value(page.after[0])}::timestamptz, ${value(page.after[1])}::text)`);
  if (filter.since) conditions.push(`m.created_at >= ${value(filter.since)}::timestamptz`);
  if (filter.until) conditions.push(`m.created_at < ${value(filter.until)}::timestamptz`);
  if (filter.mode) conditions.push(`m.mode = ${value(filter.mode)}`);
  if (filter.addressKey !== null) {
    const ids = await messagesOfAddress(db, filter.serviceId, filter.addressKey);
    // `offset 0`: looked up for each message in turn, whatever the planner thinks of it.
    conditions.push(ids.length <= ofAddressMax ? `m.id = any(${value(ids)}::text[])` : `exists (select from mail_recipient r where r.message_id = m.id and r.address_key = ${value(filter.addressKey)} offset 0)`);
  }
  const limit = value(page.limit);
  const range = (condition: string) => `(select ${columns} from mail_message m where ${[...conditions, condition].filter(Boolean).join(' and ')} order by m.created_at desc, m.id desc limit ${limit}::int)`;
  const ranges = filter.statuses === null ? [range('')] : filter.statuses.map((status) => range(`m.status = ${value(status)}`));
  return rows<MessageRow>(db, `select * from (${ranges.join(' union all ')}) m order by "createdAt" desc, id desc limit ${limit}::int`, ...values);
}

async function messagesOfAddress(db: Db, serviceId: string, addressKey: string): Promise<string[]> {
  const found = await rows<{ id: string }>(db, 'select message_id as id from mail_recipient where mail_service_id = $1 and address_key = $2 limit $3::int', serviceId, addressKey, ofAddressMax + 1);
  return found.map(({ id }) => id);
}

export type HourRow = { hour: Date; accepted: number; sent: number; delivered: number; deferred: number; bounced: number; complained: number; failed: number; suppressed: number; cancelled: number; attempted: number; hardBounced: number; liveComplained: number };

/** The last `hours` hours, the running one included, oldest first; those without mail too. */
export function readHours(db: Db, serviceId: string, hours: number): Promise<HourRow[]> {
  const count = (column: string, name = column) => `coalesce(s.${column}, 0)::float8 as "${name}"`;
  return rows<HourRow>(db, `
    select h.hour, ${['accepted', 'sent', 'delivered', 'deferred', 'bounced', 'complained', 'failed', 'suppressed', 'cancelled'].map((column) => count(column)).join(', ')},
      ${count('live_attempted', 'attempted')}, ${count('live_hard_bounced', 'hardBounced')}, ${count('live_complained', 'liveComplained')}
    from generate_series(date_trunc('hour', now()) - ($2::int - 1) * interval '1 hour', date_trunc('hour', now()), interval '1 hour') as h (hour)
      left join mail_stats_hour s on s.mail_service_id = $1 and s.hour = h.hour order by h.hour`, serviceId, hours);
}

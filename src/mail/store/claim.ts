import { prepared, rows, type Database, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { ServiceStatus } from '../state';

/** What an attempt at a message depends on beside the message itself. */
export type SendingGrounds = {
  messageId: string; serviceStatus: ServiceStatus; canSend: boolean; domain: string; /** Where bounces go: the domain's own return path once it is seen, else null. */ returnPath: string | null;
  selector: string | null;
};

export function readSendingGrounds(tx: Tx, messageIds: readonly string[]): Promise<SendingGrounds[]> {
  return rows<SendingGrounds>(tx, `
    select m.id as "messageId", s.status as "serviceStatus", coalesce(d.deleted_at is null and d.status in ('verified', 'degraded'), false) as "canSend", d.domain,
      case when exists (select from mail_domain_record r where r.domain_id = d.id and r.purpose = 'return_path' and r.status = 'ok') then d.return_path || '.' || d.domain end as "returnPath",
      coalesce(m.selector, (select k.selector from mail_domain_key k where k.domain_id = d.id and k.state = 'current')) as selector
    from mail_message m join mail_service s on s.id = m.mail_service_id join mail_domain d on d.id = m.domain_id where m.id = any($1::text[])`, messageIds);
}

export type ActiveSuppression = { mailServiceId: string; addressKey: string; reason: 'bounce' | 'complaint' | 'manual' };

export function activeSuppressions(tx: Tx, addresses: readonly { mailServiceId: string; addressKey: string }[]): Promise<ActiveSuppression[]> {
  return rows<ActiveSuppression>(tx, `
    select s.mail_service_id as "mailServiceId", s.address_key as "addressKey", s.reason from unnest($1::text[], $2::text[]) as a (service_id, address_key)
      join mail_suppression s on s.mail_service_id = a.service_id and s.address_key = a.address_key and (s.expires_at is null or s.expires_at > now())`,
  addresses.map((one) => one.mailServiceId), addresses.map((one) => one.addressKey));
}

export type MessageParties = {
  from: { name: string; address: string }; to: { name: string; address: string }[]; cc: { name: string; address: string }[]; bcc: { name: string; address: string }[];
  replyTo: { name: string; address: string } | null;
};
/** All that the bytes of a message are made from. */
export type StoredMessage = {
  id: string; domainId: string; parties: MessageParties; subject: string; text: string | null; html: string | null; derivedText: string | null; selector: string | null; createdAt: Date;
};

/** Those whose body is still kept. */
export function readStoredMessages(database: Database, messageIds: readonly string[]): Promise<StoredMessage[]> {
  return prepared<StoredMessage>(database, `
    select m.id, m.domain_id as "domainId", m.parties, m.subject, c.text_body as text, c.html_body as html, c.derived_text as "derivedText", m.selector, m.created_at as "createdAt"
    from mail_message m join mail_content c on c.message_id = m.id where m.id = any($1::text[])`, [messageIds]);
}

/** The text made from html is the same in every attempt; answers the one that is kept. */
export async function keepDerivedText(db: Db, messageId: string, text: string): Promise<string> {
  const [row] = await rows<{ text: string }>(db, `update mail_content set derived_text = coalesce(derived_text, $2) where message_id = $1 returning derived_text as text`, messageId, text);
  return row?.text ?? text;
}

export type MessageProgress = { messageId: string; settled: boolean; nextAttemptAt: Date | null };

/** Whether something is left to do and when; a message that is gone is settled. */
export async function readProgress(database: Database, messageIds: readonly string[]): Promise<MessageProgress[]> {
  const found = await prepared<MessageProgress>(database, `
    select m.id as "messageId", m.settled_at is not null as settled,
      (select min(case when r.status = 'sending' then r.lease_until else r.next_attempt_at end) from mail_recipient r where r.message_id = m.id
        and (r.status in ('queued', 'sending') or r.status = 'deferred' and r.retry_owner = 'us')) as "nextAttemptAt"
    from mail_message m where m.id = any($1::text[])`, [messageIds]);
  const byId = new Map(found.map((one) => [one.messageId, one]));
  return messageIds.map((messageId) => byId.get(messageId) ?? { messageId, settled: true, nextAttemptAt: null });
}

export type SealedKey = { domain: string; sealed: string };

export async function readSealedKey(db: Db, domainId: string, selector: string): Promise<SealedKey | null> {
  const [row] = await rows<SealedKey>(db, `select d.domain, k.private_key as sealed from mail_domain_key k join mail_domain d on d.id = k.domain_id where k.domain_id = $1 and k.selector = $2`, domainId, selector);
  return row ?? null;
}

import { prepared, rows, type Database, type Db } from '../../db/client';
import { shareReads } from '../../db/shared-reads';
import type { Tx } from '../../db/transaction';
import type { RecipientKind } from '../schemas/send';
import { warningShare } from './quota';

export type NewRecipient = { id: string; kind: RecipientKind; address: string; addressKey: string };

/** An answer kept for a repeated Idempotency-Key. */
export type KeptAnswer = { status: number; headers: Record<string, string>; body: Record<string, unknown> };
export type Kept = KeptAnswer & { key: string; fingerprint: string };

/** A message as it is accepted; JSON texts are stored as they are. */
export type NewMessage = {
  id: string; serviceId: string; keyId: string; domainId: string; mode: 'live' | 'test'; transport: string; parties: string; subject: string; metadata: string | null;
  text: string | null; html: string | null; sizeBytes: number; rfcMessageId: string; recipients: readonly NewRecipient[]; maxAgeHours: number;
  /** Seconds the relay leaves the start to this process. */
  dispatchAfterSeconds: number;
  once: Kept | null;
};

/** Where a repeated Idempotency-Key of a send is looked up: by service, so a rotated key finds it too. */
export const sendOperation = 'sendMail';

const insertStatement = `
  with given as (
    select * from json_to_recordset($1::json) as g (id text, "serviceId" text, "keyId" text, "domainId" text, mode text, transport text, parties text, subject text, metadata text,
      "sizeBytes" int, "rfcMessageId" text, "recipientCount" int, "maxAgeHours" int, "dispatchAfterSeconds" int, "onceKey" text, fingerprint text, status int, headers text, body text)),
  once as (
    insert into idempotency_key (principal, operation, key, fingerprint, status, headers, body)
    select "serviceId", '${sendOperation}', "onceKey", fingerprint, status, headers::json, body::json from given where "onceKey" is not null order by 1, 3
    on conflict do nothing returning principal, key),
  taken as (select g.* from given g where g."onceKey" is null or exists (select from once o where o.principal = g."serviceId" and o.key = g."onceKey")),
  bodies as (select * from unnest($2::text[], $3::text[], $4::text[]) as b (id, text_body, html_body)),
  message as (
    insert into mail_message (id, mail_service_id, api_key_id, domain_id, mode, transport, parties, subject, metadata, has_text, has_html, size_bytes, rfc_message_id,
      recipient_count, counts, dispatch_after, expires_at)
    select t.id, t."serviceId", t."keyId", t."domainId", t.mode, t.transport, t.parties::json, t.subject, t.metadata::json, b.text_body is not null, b.html_body is not null,
      t."sizeBytes", t."rfcMessageId", t."recipientCount", jsonb_build_object('queued', t."recipientCount"), now() + t."dispatchAfterSeconds" * interval '1 second',
      now() + t."maxAgeHours" * interval '1 hour'
    from taken t join bodies b on b.id = t.id returning id),
  content as (insert into mail_content (message_id, text_body, html_body) select b.id, b.text_body, b.html_body from bodies b join taken t on t.id = b.id),
  recipient as (
    insert into mail_recipient (id, message_id, mail_service_id, position, kind, address, address_key)
    select r.id, r.message_id, t."serviceId", r.position, r.kind, r.address, r.address_key
    from unnest($5::text[], $6::text[], $7::int[], $8::text[], $9::text[], $10::text[]) as r (id, message_id, position, kind, address, address_key)
      join taken t on t.id = r.message_id)
  select id from message`;

/** Writes messages with their recipients and bodies in one statement; answers which: one whose Idempotency-Key was used before is left out. */
export async function insertMessages(tx: Tx, messages: readonly NewMessage[]): Promise<Set<string>> {
  const recipients = messages.flatMap((message) => message.recipients.map((recipient, position) => ({ ...recipient, position, messageId: message.id })));
  const inserted = await rows<{ id: string }>(tx, insertStatement, JSON.stringify(messages.map(plain)),
    messages.map((message) => message.id), messages.map((message) => message.text), messages.map((message) => message.html),
    recipients.map((one) => one.id), recipients.map((one) => one.messageId), recipients.map((one) => one.position), recipients.map((one) => one.kind),
    recipients.map((one) => one.address), recipients.map((one) => one.addressKey));
  return new Set(inserted.map(({ id }) => id));
}

function plain({ text: _text, html: _html, recipients, once, ...rest }: NewMessage) {
  const kept = once && { onceKey: once.key, fingerprint: once.fingerprint, status: once.status, headers: JSON.stringify(once.headers), body: JSON.stringify(once.body) };
  return { ...rest, recipientCount: recipients.length, ...kept };
}

export type Counted = { serviceId: string; recipients: number; /** Without those of test keys. */ charged: number };

/**
 * Counts accepted recipients, in the order of services: the locks every sender of a service needs, taken last. `full`: a
 * service's ceiling does not allow its recipients; then nothing of this transaction may be committed. `notable`: it came near.
 */
export async function countAccepted(tx: Tx, counted: readonly Counted[]): Promise<{ full: boolean; notable: string[] }> {
  const sorted = counted.toSorted((a, b) => (a.serviceId < b.serviceId ? -1 : 1));
  const found = await rows<{ serviceId: string; refused: boolean }>(tx, `
    with given as (select * from unnest($1::text[], $2::bigint[], $3::bigint[]) as g (service_id, charged, recipients)),
    locked as materialized (
      select u.mail_service_id, u.period_start from mail_usage u join given g on g.service_id = u.mail_service_id and g.charged > 0
      where u.period_start <= now() and now() < u.period_end order by u.mail_service_id for update of u),
    charged as (
      update mail_usage u set recipients = u.recipients + g.charged, updated_at = now() from locked l join given g on g.service_id = l.mail_service_id
      where u.mail_service_id = l.mail_service_id and u.period_start = l.period_start and (u.ceiling is null or u.recipients + g.charged <= u.ceiling)
      returning u.mail_service_id, u.recipients >= u.ceiling * ${warningShare} and (u.warned_at is null or u.recipients >= u.ceiling and u.reached_at is null) as notable),
    tallied as (
      insert into mail_stats_hour as s (mail_service_id, hour, accepted) select service_id, date_trunc('hour', now()), recipients from given order by service_id
      on conflict (mail_service_id, hour) do update set accepted = s.accepted + excluded.accepted)
    select service_id as "serviceId", c.mail_service_id is null as refused from given g left join charged c on c.mail_service_id = g.service_id
    where g.charged > 0 and (c.mail_service_id is null or c.notable)`,
  sorted.map((one) => one.serviceId), sorted.map((one) => one.charged), sorted.map((one) => one.recipients));
  return { full: found.some(({ refused }) => refused), notable: found.map(({ serviceId }) => serviceId) };
}

export type Grounds = { domainId: string | null; used: number | null; ceiling: number | null; ceilingReason: 'included' | 'spend_limit' | null; periodEnd: Date | null };

const groundsStatement = `
  select d.id as "domainId", u.recipients::float8 as used, u.ceiling::float8 as ceiling, u.ceiling_reason as "ceilingReason", u.period_end as "periodEnd"
  from (select 1) one
    left join mail_domain d on d.mail_service_id = $1 and d.domain = $2 and d.deleted_at is null and d.status in ('verified', 'degraded')
    left join mail_usage u on u.mail_service_id = $1 and u.period_start <= now() and now() < u.period_end`;

/** What a send is judged by, in one statement: the sender's domain when it may send, and the use of the running period when that is open. */
export function readGrounds(db: Database, serviceId: string, senderDomain: string): Promise<Grounds> {
  const known = groundsReaders.get(db) ?? groundsReader(db);
  groundsReaders.set(db, known);
  return known([serviceId, senderDomain]);
}

type GroundsReader = (about: readonly [serviceId: string, senderDomain: string]) => Promise<Grounds>;
const groundsReaders = new WeakMap<Database, GroundsReader>();

function groundsReader(db: Database): GroundsReader {
  return shareReads((about) => about.join(' '), async (about) => {
    const [row] = await prepared<Grounds>(db, groundsStatement, [...about]);
    return row ?? { domainId: null, used: null, ceiling: null, ceilingReason: null, periodEnd: null };
  });
}

/** The answer a key was given before, with the fingerprint of what was asked then; null for a new key. */
export async function findKept(db: Database, serviceId: string, key: string): Promise<(KeptAnswer & { fingerprint: string }) | null> {
  const [row] = await prepared<KeptAnswer & { fingerprint: string }>(db, `select fingerprint, status, headers, body from idempotency_key
    where principal = $1 and operation = '${sendOperation}' and key = $2`, [serviceId, key]);
  return row ?? null;
}

/** How much mail no workflow was started for, counted up to one more than `limit`, and for how long the oldest of it waits. */
export async function readPending(db: Db, limit: number): Promise<{ count: number; oldestSeconds: number }> {
  const [row] = await rows<{ count: number; oldestSeconds: number }>(db, `
    select count(*)::int as count, coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as "oldestSeconds"
    from (select created_at from mail_message where dispatched_at is null limit $1::int + 1) waiting`, limit);
  return row ?? { count: 0, oldestSeconds: 0 };
}

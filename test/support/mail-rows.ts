import { newId, type Id } from '../../src/core/ids';
import type { Scope } from '../../src/core/caller';
import type { Database } from '../../src/db/client';
import type { RecipientStatus } from '../../src/mail/state';
import { newApiKey } from '../../src/identity/service';

type Owner = { orgId: string; projectId: string };

/** A mail service as a row, for tests of what hangs on one. */
export async function insertMailService({ pool }: Pick<Database, 'pool'>, { orgId, projectId }: Owner, status: 'active' | 'suspended' = 'active'): Promise<Id<'mls'>> {
  const id = newId('mls');
  await pool.query(`insert into mail_service (id, org_id, project_id, display_name, plan, sends_per_second, status, suspended_reason, suspended_at)
    values ($1, $2, $3, 'Test', 'launch', 10, $4, case when $4 = 'suspended' then 'admin' end, case when $4 = 'suspended' then now() end)`, [id, orgId, projectId, status]);
  return id;
}

/** A live key with these scopes as a row; of a service of its own unless one is given. */
export async function insertApiKey(db: Pick<Database, 'pool'>, owner: Owner, { scopes, serviceId, mode = 'live' }: { scopes: readonly Scope[]; serviceId?: string; mode?: 'live' | 'test' }): Promise<{ id: Id<'key'>; key: string }> {
  const { key, digest, prefix, last4 } = newApiKey(mode);
  const id = newId('key');
  await db.pool.query(`insert into api_key (id, service_id, org_id, project_id, name, mode, prefix, last4, digest, scopes, created_by)
    values ($1, $2, $3, $4, 'ci', $5, $6, $7, $8, $9, 'usr_x')`, [id, serviceId ?? await insertMailService(db, owner), owner.orgId, owner.projectId, mode, prefix, last4, digest, scopes]);
  return { id, key };
}

/** A message with a body and one recipient of each of these statuses, as rows. */
export async function insertMessage({ pool }: Pick<Database, 'pool'>, serviceId: string, statuses: readonly RecipientStatus[]): Promise<Id<'msg'>> {
  const id = newId('msg');
  const counts = Object.fromEntries(statuses.map((status) => [status, statuses.filter((other) => other === status).length]));
  await pool.query(`insert into mail_message (id, mail_service_id, api_key_id, domain_id, mode, transport, status, parties, subject, has_text, has_html, size_bytes, rfc_message_id, recipient_count, counts, expires_at)
    values ($1, $2, 'key_x', 'dom_x', 'live', 'capture', 'queued', '{}', 'Hello', true, false, 100, $3, $4, $5, now() + interval '72 hours')`, [id, serviceId, `<${id}@x.test>`, statuses.length, JSON.stringify(counts)]);
  await pool.query(`insert into mail_content (message_id, text_body) values ($1, 'Hello')`, [id]);
  for (const [position, status] of statuses.entries()) {
    await pool.query(`insert into mail_recipient (id, message_id, mail_service_id, position, kind, address, address_key, status, lease_until, next_attempt_at)
      values ($1, $2, $3, $4, 'to', $5, $5, $6, case when $6 = 'sending' then now() + interval '2 minutes' end, case when $6 in ('queued', 'deferred') then now() end)`,
    [newId('rcp'), id, serviceId, position, `r${position}@y.test`, status]);
  }
  return id;
}

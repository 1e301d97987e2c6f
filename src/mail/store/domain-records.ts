import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import { recordTtl, type DomainRecord, type SigningKey } from '../rules/domain-records';
import type { RecordStatus } from '../state';

export type RecordRow = DomainRecord & { domainId: string; ttl: number; status: RecordStatus; found: string[]; published: boolean };
export type KeyRow = SigningKey & { listedUntil: Date | null };

/** Records of these domains, in the order they are shown. */
export function readDomainRecords(db: Db, domainIds: readonly string[]): Promise<RecordRow[]> {
  return rows<RecordRow>(db, `select domain_id as "domainId", purpose, selector, required, type, name, value, ttl, status, found, published
    from mail_domain_record where domain_id = any($1::text[]) order by domain_id, position`, domainIds);
}

/** The domain's records are these; one that is there keeps what was found. */
export async function writeDomainRecords(tx: Tx, domainId: string, records: readonly DomainRecord[]): Promise<void> {
  await execute(tx, 'delete from mail_domain_record where domain_id = $1 and name <> all($2::text[])', domainId, records.map(({ name }) => name));
  await execute(tx, `insert into mail_domain_record (domain_id, name, purpose, selector, required, type, value, ttl, position)
    select $1, name, purpose, selector, required, type, value, $9::int, position
    from unnest($2::text[], $3::text[], $4::text[], $5::boolean[], $6::text[], $7::text[], $8::int[]) as given (name, purpose, selector, required, type, value, position)
    on conflict (domain_id, name) do update set required = excluded.required, position = excluded.position`,
  domainId, records.map(({ name }) => name), records.map(({ purpose }) => purpose), records.map(({ selector }) => selector), records.map(({ required }) => required),
  records.map(({ type }) => type), records.map(({ value }) => value), records.map((_, i) => i), recordTtl);
}

export type FoundRecord = { name: string; status: RecordStatus; found: readonly string[] };

export async function writeFound(tx: Tx, domainId: string, found: readonly FoundRecord[]): Promise<void> {
  for (const { name, status, found: texts } of found) {
    await execute(tx, 'update mail_domain_record set status = $3, found = $4::text[] where domain_id = $1 and name = $2', domainId, name, status, texts);
  }
}

/** Which records we have written into a hosted zone. */
export async function writePublished(tx: Tx, domainId: string, names: readonly string[]): Promise<void> {
  await execute(tx, 'update mail_domain_record set published = (name = any($2::text[])) where domain_id = $1', domainId, names);
}

export function readKeys(db: Db, domainId: string): Promise<KeyRow[]> {
  return rows<KeyRow>(db, `select selector, state, public_key as "publicKey", listed_until as "listedUntil" from mail_domain_key where domain_id = $1 order by created_at, selector`, domainId);
}

export async function insertKey(tx: Tx, key: { domainId: string; selector: string; state: 'current' | 'next'; publicKey: string; sealed: string }): Promise<void> {
  await execute(tx, 'insert into mail_domain_key (domain_id, selector, state, public_key, private_key) values ($1, $2, $3, $4, $5)', key.domainId, key.selector, key.state, key.publicKey, key.sealed);
}

/** The key that waited signs from now on; the one before is listed until then. */
export async function promoteKey(tx: Tx, domainId: string, listedUntil: Date): Promise<void> {
  await execute(tx, `update mail_domain_key set state = 'former', listed_until = $2::timestamptz where domain_id = $1 and state = 'current'`, domainId, listedUntil);
  await execute(tx, `update mail_domain_key set state = 'current' where domain_id = $1 and state = 'next'`, domainId);
}

/** Keys whose time on the list is over are gone; how many. */
export function dropFormerKeys(tx: Tx, domainId: string, now: Date): Promise<number> {
  return execute(tx, `delete from mail_domain_key where domain_id = $1 and state = 'former' and listed_until <= $2::timestamptz`, domainId, now);
}

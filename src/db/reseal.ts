import type { Secrets } from '../core/secrets';
import { execute, rows, type Db } from './client';

/**
 * Where sealed values live, and what each is bound to, as SQL over its row. It repeats what the products say where they seal: a test seals through
 * them and reseals here, and another finds columns that are missing.
 */
export const sealedPlaces: readonly { table: string; column: string; aad: string }[] = [
  { table: 'postgres_credential', column: 'secret_sealed', aad: `service_id || '|' || login || '|' || version` },
  { table: 'postgres_credential', column: 'verifier_sealed', aad: `service_id || '|' || login || '|verifier'` },
  { table: 'postgres_host', column: 'dsn_sealed', aad: `name || '|dsn'` },
  { table: 'installation_secret', column: 'sealed', aad: 'name' },
  { table: 'account_mail', column: 'sealed_link', aad: `'account_mail:' || id` },
  { table: 'mail_domain_key', column: 'private_key', aad: `'mail_domain_key/' || domain_id || '/' || selector` },
  { table: 'mail_webhook', column: 'secret', aad: `'mail_webhook:' || id` },
  { table: 'mail_webhook', column: 'former_secret', aad: `'mail_webhook:' || id` },
  { table: 'gateway_certificate', column: 'key_sealed', aad: `'certificate:' || id` },
];

const pageMax = 200;

/**
 * Every sealed value is under the first master key. Written as compare-and-set on the value itself: one that is replaced or wiped meanwhile is left
 * alone. Safe at any time and twice. Answers how many it sealed anew. Errors: a value none of the keys opens.
 */
export async function resealAll(db: Db, secrets: Secrets): Promise<number> {
  let resealed = 0;
  for (const place of sealedPlaces) resealed += await resealPlace(db, secrets, place);
  return resealed;
}

async function resealPlace(db: Db, secrets: Secrets, place: Place): Promise<number> {
  let resealed = 0;
  for (let after: string | null = ''; after !== null;) {
    const page: Sealed[] = await readPage(db, place, after);
    for (const value of page) if (await resealOne(db, secrets, place, value)) resealed += 1;
    after = page.length < pageMax ? null : page.at(-1)?.sealed ?? null;
  }
  return resealed;
}

type Place = (typeof sealedPlaces)[number];
type Sealed = { sealed: string; aad: string };

function readPage(db: Db, { table, column, aad }: Place, after: string): Promise<Sealed[]> {
  return rows<Sealed>(db, `select ${column} as sealed, ${aad} as aad from ${table} where ${column} collate "C" > $1 order by ${column} collate "C" limit ${pageMax}`, after);
}

async function resealOne(db: Db, secrets: Secrets, { table, column }: Place, { sealed, aad }: Sealed): Promise<boolean> {
  const renewed = secrets.reseal(sealed, aad);
  return renewed !== null && await execute(db, `update ${table} set ${column} = $1 where ${column} = $2`, renewed, sealed) === 1;
}

import { execute, rows, type Db } from '../../db/client';

export type AccountRow = { keySealed: string; accountUrl: string | null };

/** The account at a directory; `sealed` becomes its key when there is none yet. */
export async function ensureAccount(db: Db, directoryUrl: string, sealed: string): Promise<AccountRow> {
  const [row] = await rows<AccountRow>(db, `insert into gateway_acme_account (directory_url, key_sealed) values ($1, $2)
    on conflict (directory_url) do update set directory_url = excluded.directory_url returning key_sealed as "keySealed", account_url as "accountUrl"`, directoryUrl, sealed);
  return row ?? { keySealed: sealed, accountUrl: null };
}

/** Null: the directory no longer knows the account; it is made again with the same key. */
export async function keepAccountUrl(db: Db, directoryUrl: string, url: string | null): Promise<void> {
  await execute(db, 'update gateway_acme_account set account_url = $2 where directory_url = $1', directoryUrl, url);
}

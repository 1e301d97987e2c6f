import pg from 'pg';
import type { Instance } from './instance';

const { escapeIdentifier: name } = pg;

/**
 * Every row of every table and materialised view of every database, catalogues included, is read and written out as text: page
 * checksums, TOAST and each value's own form are checked by that. Nothing a customer has written runs: a cast to text could be his.
 * Errors: `backend_error` for the first that cannot be read.
 */
export async function readEverything(instance: Instance, goOn: () => void): Promise<{ tables: number; rows: number }> {
  const databases = await instance.asSuperuser(async (client) => {
    const { rows } = await client.query<{ datname: string }>('select datname from pg_database where not datistemplate and datconnlimit <> -2 order by datname');
    for (const { datname } of rows) await client.query(`alter database ${name(datname)} allow_connections true`);
    return rows.map(({ datname }) => datname);
  });
  const read = { tables: 0, rows: 0 };
  for (const database of databases) await instance.asSuperuser((client) => readDatabase(client, read, goOn), database);
  return read;
}

async function readDatabase(client: pg.Client, read: { tables: number; rows: number }, goOn: () => void): Promise<void> {
  await client.query('set statement_timeout = 0');
  const { rows: tables } = await client.query<{ place: string; relname: string }>(`select n.nspname as place, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'm') and c.relispopulated and c.relpersistence <> 't' order by 1, 2`);
  for (const { place, relname } of tables) {
    goOn();
    const { rows: [found] } = await client.query<{ n: number }>(`select count(pg_catalog.record_out(t.*))::float8 as n from only ${name(place)}.${name(relname)} t`);
    read.tables += 1;
    read.rows += found?.n ?? 0;
  }
}

import pg from 'pg';
import { AppError } from '../../../core/errors';

export type SuperuserAddress = { socketDir: string; port: number };

/**
 * What the owner of a database may have set for every session in it (ALTER DATABASE … SET) is not for ours: least of all where names are looked up. With
 * any schema but the catalogue on the path, a function or an operator of a customer's would run with our rights (CVE-2018-1058).
 */
const ownSettings = Object.entries({
  search_path: 'pg_catalog', role: 'none', local_preload_libraries: '', default_transaction_read_only: 'off', default_transaction_isolation: 'read\\ committed',
  transaction_timeout: '0', idle_session_timeout: '0', idle_in_transaction_session_timeout: '60s', lock_timeout: '0', standard_conforming_strings: 'on',
}).map(([setting, value]) => `-c ${setting}=${value}`).join(' ');

/** A session as holdfast_admin over the instance's own socket; ends with `work`. Errors: `backend_error` with the SQLSTATE alone. */
export async function asSuperuser<T>(address: SuperuserAddress, work: (client: pg.Client) => Promise<T>, database = 'postgres'): Promise<T> {
  const client = await connectSuperuser(address, database);
  try {
    return await inSession(client, work);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The same in a session that is open. */
export async function inSession<T>(client: pg.Client, work: (client: pg.Client) => Promise<T>): Promise<T> {
  try {
    return await work(client);
  } catch (error) {
    throw refusal(error);
  }
}

/** Errors: the driver's, so that whoever waits for a server can tell "not yet" from "no". */
export async function connectSuperuser({ socketDir, port }: SuperuserAddress, database = 'postgres'): Promise<pg.Client> {
  const client = new pg.Client({
    host: socketDir, port, user: 'holdfast_admin', database, application_name: 'holdfast', connectionTimeoutMillis: 5_000, statement_timeout: 12_000,
    options: ownSettings,
  });
  client.on('error', () => undefined); // the statement under way is refused as well, and that is where it is dealt with
  await client.connect();
  return client;
}

/** All or nothing. */
export async function inOneTransaction<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query('begin');
  try {
    const result = await work();
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

/** A server's words may quote statements and rows: its code goes out, the rest stays here. */
function refusal(error: unknown): unknown {
  if (error instanceof AppError) return error;
  const code = error instanceof pg.DatabaseError ? error.code : undefined;
  return new AppError('backend_error', code ? `The database server refused a change (SQLSTATE ${code}).` : 'The database server could not be reached.', {}, { cause: error });
}

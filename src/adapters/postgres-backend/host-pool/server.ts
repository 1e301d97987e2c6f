import pg from 'pg';
import { AppError } from '../../../core/errors';

/** A registered server: what an administrator of it gave us to work with (docs/operating.md, "Postgres on registered servers"). */
export type PoolServer = {
  name: string;
  /** Administrator without superuser rights: CREATEDB, CREATEROLE, SET on temp_file_limit. */
  dsn: string;
  capacityBytes: number; maxServices: number; publicHost: string; publicPort: number;
};

const control = 'holdfast';
const connectMs = 10_000;
const statementMs = 20_000;

// Objects of customers must never be found by a name an administrator's session uses (CVE-2018-1058).
const options = '-c search_path=pg_catalog -c idle_in_transaction_session_timeout=30s';

/** What we keep on a server: which services it holds, and the highest generation seen of each, also after it is gone. */
const schema = `
  create table if not exists public.service (
    id text primary key, generation int not null, bytes bigint, state text not null default 'absent' check (state in ('absent', 'placed', 'made', 'retained')),
    mode text not null default 'full', stopped boolean not null default false, logins text[] not null default '{}',
    check ((state = 'absent') = (bytes is null)));`;

/**
 * A session as administrator in one of the server's databases; ends with `work`. Errors: `backend_error` with the SQLSTATE alone: a server's words may
 * quote statements.
 */
export async function asAdmin<T>(server: PoolServer, work: (client: pg.Client) => Promise<T>, database = control): Promise<T> {
  const client = clientOf(server, database);
  try {
    await client.connect();
    return await work(client);
  } catch (error) {
    throw refusal(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Our own database is on the server, and the server keeps customers apart. Safe twice and beside others. Errors: `backend_error`; its cause says what the
 * administrator has to do.
 */
export async function prepareServer(server: PoolServer): Promise<void> {
  await ensureControl(server);
  await asAdmin(server, async (client) => {
    await client.query(`select pg_advisory_lock(0)`);
    await client.query(schema);
    await client.query(`revoke all on database ${control} from public`);
    await requireKeptApart(client, server);
  });
}

async function ensureControl(server: PoolServer): Promise<void> {
  const client = clientOf(server, control);
  const missing = await client.connect().then(() => false, (error: unknown) => {
    if (codeOf(error) === '3D000') return true;
    throw refusal(error);
  }).finally(() => client.end().catch(() => undefined));
  if (!missing) return;
  await asAdmin(server, (own) => own.query(`create database ${control}`).catch((error: unknown) => {
    if (codeOf(error) !== '42P04' && codeOf(error) !== '23505') throw error;
  }), new URL(server.dsn).pathname.slice(1) || 'postgres');
}

/** Fails closed: a server whose other databases are open to everybody would show customers to each other. */
async function requireKeptApart(client: pg.Client, server: PoolServer): Promise<void> {
  const { rows: [found] } = await client.query<{ version: number; admin: boolean; parameter: boolean; open: string[] }>(`
    select current_setting('server_version_num')::int as version,
      (select rolcreatedb and rolcreaterole or rolsuper from pg_roles where rolname = current_user) as admin,
      has_parameter_privilege('temp_file_limit', 'SET') as parameter,
      array(select datname::text from pg_database d where datallowconn and exists (
        select from aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a where a.grantee = 0 and a.privilege_type = 'CONNECT')) as open`);
  const faults = [
    ...((found?.version ?? 0) < 160_000 ? ['PostgreSQL 16 or newer is needed'] : []),
    ...(found?.admin ? [] : ['the role of the dsn needs CREATEDB and CREATEROLE']),
    ...(found?.parameter ? [] : ['the role of the dsn needs GRANT SET ON PARAMETER temp_file_limit']),
    ...(found?.open.map((database) => `REVOKE CONNECT ON DATABASE ${database} FROM PUBLIC is needed`) ?? []),
  ];
  if (faults.length > 0) throw new AppError('backend_error', 'A registered server is not prepared for services.', {}, { cause: new Error(`${server.name}: ${faults.join('; ')}`) });
}

function clientOf({ dsn }: PoolServer, database: string): pg.Client {
  const url = new URL(dsn);
  url.pathname = `/${database}`;
  const client = new pg.Client({ connectionString: url.href, options, application_name: 'holdfast', connectionTimeoutMillis: connectMs, statement_timeout: statementMs });
  client.on('error', () => undefined); // the statement under way is refused as well, and that is where it is dealt with
  return client;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

function refusal(error: unknown): unknown {
  if (error instanceof AppError) return error;
  const code = codeOf(error);
  return new AppError('backend_error', code ? `The database server refused a change (SQLSTATE ${code}).` : 'The database server could not be reached.', {}, { cause: error });
}

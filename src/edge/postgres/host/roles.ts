import pg from 'pg';
import { AppError } from '../../../core/errors';
import type { Names } from '../../../postgres/rules';
import type { HostCall } from '../../../postgres/schemas/host';
import type { Instance } from './instance';
import { customerDatabases, endCustomerSessions } from './restriction';

const { escapeIdentifier: name, escapeLiteral: text } = pg;
type Login = HostCall<'ensureAccess'>['logins'][number];

/** Names of an instance that belongs to nobody yet; a claim renames the roles. The database is `app` from the beginning. */
export const poolNames: Names = {
  label: 'pool', key: 'pool', owner: 'o_pool', logins: ['u_pool_1', 'u_pool_2'], restricted: 'r_pool', database: 'app',
};

/**
 * Exactly these logins may connect, to a database that belongs to the service's owner role; what the login makes belongs
 * to that role, so a second login sees it as its own (contract postgres.md §4.3, §6.1). Safe twice; renames what a pool prepared.
 */
export async function ensureAccess(instance: Instance, names: Names, logins: readonly Login[], endSessionsOf: readonly string[]): Promise<void> {
  await instance.asSuperuser(async (client) => {
    const { roles, database } = await findAccess(client, names);
    // One message is one transaction (Frontend/Backend Protocol, "Multiple Statements in a Simple Query").
    await client.query([
      ...ownerStatements(names, roles),
      ...logins.flatMap((login) => loginStatements(names, login, roles)),
      ...names.logins.filter((login) => roles.has(login) && !logins.some((wanted) => wanted.name === login)).map((login) => `alter role ${name(login)} nologin password null`),
    ].join(';\n'));
    if (!database) await ensureDatabase(client, instance, names);
    if (endSessionsOf.length > 0) await client.query(`select pg_terminate_backend(pid) from pg_stat_activity where usename = any($1::text[])`, [endSessionsOf]);
    await requireVerifiers(client, logins);
  });
}

/** What a claim will do and ask, taken back: afterwards the session knows its way. */
export async function rehearseClaim(client: pg.Client): Promise<void> {
  const names: Names = { ...poolNames, owner: 'o_rehearsal', logins: ['u_rehearsal_1', 'u_rehearsal_2'] };
  const { roles } = await findAccess(client, names);
  const login: Login = { name: names.logins[0], verifier: '', connectionLimit: 1, validUntil: null, enabled: false };
  await client.query(['begin', ...ownerStatements(names, roles), ...loginStatements(names, login, roles), 'rollback'].join(';\n'));
  await readLogins(client, [login]);
}

/** Nobody but holdfast_admin can connect, and who was connected no longer is. */
export async function closeAccess(client: pg.Client, names: Names): Promise<void> {
  const { roles } = await findAccess(client, names);
  const databases = await customerDatabaseNames(client, 'datallowconn');
  await client.query([
    ...names.logins.filter((login) => roles.has(login)).map((login) => `alter role ${name(login)} nologin`),
    ...databases.map((database) => `alter database ${name(database)} allow_connections false`),
    'select 1',
  ].join(';\n'));
  await endCustomerSessions(client);
}

/** No customer's database takes connections, whoever asks, and who was connected no longer is. */
export async function closeDatabases(client: pg.Client): Promise<void> {
  const databases = await customerDatabaseNames(client, 'datallowconn');
  await client.query([...databases.map((database) => `alter database ${name(database)} allow_connections false`), 'select 1'].join(';\n'));
  await endCustomerSessions(client);
}

/** Logins that have a password may connect again. */
export async function openAccess(client: pg.Client, names: Names): Promise<void> {
  const { rows } = await client.query<{ rolname: string }>(
    'select rolname from pg_authid where rolname = any($1::text[]) and rolpassword is not null and not rolcanlogin', [names.logins]);
  if (rows.length > 0) await client.query(rows.map((role) => `alter role ${name(role.rolname)} login`).join('; '));
}

/** Databases take connections again, of whoever may log in. */
export async function openDatabases(client: pg.Client): Promise<void> {
  const databases = await customerDatabaseNames(client, 'not datallowconn');
  if (databases.length > 0) await client.query(databases.map((database) => `alter database ${name(database)} allow_connections true`).join('; '));
}

export async function limitConnections(client: pg.Client, names: Names, connections: number): Promise<void> {
  const { roles } = await findAccess(client, names);
  for (const login of names.logins) if (roles.has(login)) await client.query(`alter role ${name(login)} connection limit ${connections}`);
}

async function customerDatabaseNames(client: pg.Client, condition: string): Promise<string[]> {
  const { rows } = await client.query<{ datname: string }>(`select datname from pg_database where ${customerDatabases} and ${condition}`);
  return rows.map((row) => row.datname);
}

/** Which of the service's roles there are, or those of the pool, and whether its database is there. */
async function findAccess(client: pg.Client, names: Names): Promise<{ roles: Set<string>; database: boolean }> {
  const { rows: [found] } = await client.query<{ roles: string[]; database: boolean }>(`select exists (select from pg_database where datname = $2) as database,
    array(select rolname::text from pg_authid where rolname = any($1::text[])) as roles`, [[names.owner, ...names.logins, names.restricted, poolNames.owner, ...poolNames.logins], names.database]);
  return { roles: new Set(found?.roles), database: found?.database ?? false };
}

function ownerStatements(names: Names, found: Set<string>): string[] {
  if (found.has(names.owner)) return [];
  if (found.has(poolNames.owner)) return [`alter role ${name(poolNames.owner)} rename to ${name(names.owner)}`];
  return [
    `create role ${name(names.owner)} nologin createdb createrole`,
    `grant pg_monitor, pg_signal_backend, pg_maintain to ${name(names.owner)}`,
    'revoke connect on database postgres, template1 from public',
  ];
}

/** The login itself carries no attribute: nothing is left to it once the owner role is taken from it. */
function loginStatements(names: Names, login: Login, found: Set<string>): string[] {
  const role = name(login.name);
  const [pooled] = poolNames.logins;
  const make = found.has(login.name) ? []
    : found.has(pooled) && login.name === names.logins[0] ? [`alter role ${name(pooled)} rename to ${role}`, `alter role ${role} set role = ${text(names.owner)}`]
      : [`create role ${role} nologin`, `grant ${name(names.owner)} to ${role}`, `alter role ${role} set role = ${text(names.owner)}`];
  const secret = login.enabled ? `login password ${text(login.verifier)}` : 'nologin password null';
  return [...make, `alter role ${role} ${secret} connection limit ${login.connectionLimit} valid until ${text(login.validUntil ?? 'infinity')}`];
}

/** It is there, also when its customer has dropped it or called it something else. */
export async function ensureDatabase(client: pg.Client, instance: Instance, names: Names): Promise<void> {
  const { rows } = await client.query('select 1 from pg_database where datname = $1', [names.database]);
  if (rows.length > 0) return;
  await client.query(`create database ${name(names.database)} owner ${name(names.owner)}`);
  await instance.asSuperuser((app) => app.query(`alter schema public owner to ${name(names.owner)}`), names.database);
}

/** What the server has is read back: a login is only proven by its stored verifier when the password was never used. */
async function requireVerifiers(client: pg.Client, logins: readonly Login[]): Promise<void> {
  const rows = await readLogins(client, logins);
  const stands = (login: Login) => rows.some((row) => row.rolname === login.name && row.rolcanlogin === login.enabled
    && row.rolpassword === (login.enabled ? login.verifier : null));
  if (!logins.every(stands)) throw new AppError('backend_error', 'The database server did not keep the login it was given.');
}

async function readLogins(client: pg.Client, logins: readonly Login[]) {
  const { rows } = await client.query<{ rolname: string; rolpassword: string | null; rolcanlogin: boolean }>(
    'select rolname, rolpassword, rolcanlogin from pg_authid where rolname = any($1::text[])', [logins.map((login) => login.name)]);
  return rows;
}

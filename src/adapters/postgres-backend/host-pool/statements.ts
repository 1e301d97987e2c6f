import pg from 'pg';
import type { Login } from '../../../postgres/ports';
import type { AccessMode, Limits, Names } from '../../../postgres/rules';

const { escapeIdentifier: name, escapeLiteral: text } = pg;

/** The statements of contract postgres.md §6.3. Roles and databases are named after the service alone, so nothing here is a customer's text. */
export const roleNames = (names: Names): string[] => [names.owner, names.restricted, ...names.logins];

/** Name of the database while it is kept for an undelete. */
export const retainedName = ({ key }: Names): string => `gone_${key}`;

/**
 * Roles that carry no attribute at all. The administrator belongs to each of them, so that it may end their sessions and act for them; none of them
 * belongs to the administrator.
 */
export function createRoles(names: Names, found: ReadonlySet<string>): string[] {
  const missing = [names.owner, names.restricted].filter((role) => !found.has(role));
  return missing.flatMap((role) => [`create role ${name(role)} nologin`, `grant ${name(role)} to current_user with inherit true, set true`]);
}

/** Closed until `grantDatabase`: for a moment everybody could connect to it otherwise. */
export function createDatabase({ database }: Names, { connections }: Limits): string {
  return `create database ${name(database)} template template0 strategy wal_log allow_connections false connection limit ${connections}`;
}

/** The database stays ours; its owner role may use it and make schemas in it. */
export function grantDatabase({ database, owner, restricted }: Names): string[] {
  return [
    `revoke all on database ${name(database)} from public`,
    `grant connect, temporary, create on database ${name(database)} to ${name(owner)}`,
    `grant connect on database ${name(database)} to ${name(restricted)}`,
    `alter database ${name(database)} allow_connections true`,
  ];
}

/** Once inside the new database: what a customer of any PostgreSQL finds, a schema `public` of his own. */
export const ownPublicSchema = ({ owner }: Names): string => `alter schema public owner to ${name(owner)}`;

/** One login as it shall be; what it may do follows from the mode. */
export function setLogin(names: Names, login: Login, found: ReadonlySet<string>, limits: Limits): string[] {
  const role = name(login.name);
  const create = found.has(login.name) ? [] : [`create role ${role} nologin`, `grant ${role} to current_user with inherit true, set true`];
  const secret = login.enabled ? `login password ${text(login.verifier)}` : 'nologin password null';
  return [...create, `alter role ${role} ${secret} connection limit ${login.connectionLimit} valid until ${text(login.validUntil ?? 'infinity')}`, ...limitLogin(names, login.name, limits)];
}

export function dropPassword(login: string): string {
  return `alter role ${name(login)} nologin password null`;
}

/** Only a superuser lifts temp_file_limit; statement_timeout is a default. Both stand at the login, and at the database for whoever comes otherwise. */
export function limitDatabase({ database }: Names, { connections, statementTimeoutSeconds, tempFileLimitMb }: Limits): string[] {
  return [
    `alter database ${name(database)} connection limit ${connections}`,
    `alter database ${name(database)} set statement_timeout = '${statementTimeoutSeconds}s'`,
    `alter database ${name(database)} set temp_file_limit = '${tempFileLimitMb}MB'`,
  ];
}

export function limitLogin({ database }: Names, login: string, { statementTimeoutSeconds, tempFileLimitMb }: Limits): string[] {
  return [
    `alter role ${name(login)} in database ${name(database)} set statement_timeout = '${statementTimeoutSeconds}s'`,
    `alter role ${name(login)} in database ${name(database)} set temp_file_limit = '${tempFileLimitMb}MB'`,
  ];
}

/** What the mode allows these logins, `login` telling whether they may come at all. */
export function setMode(names: Names, mode: AccessMode, logins: readonly string[], { connections }: Limits): string[] {
  const [wanted, other] = mode === 'restricted' ? [names.restricted, names.owner] : [names.owner, names.restricted];
  return [
    ...logins.flatMap((login) => [
      `grant ${name(wanted)} to ${name(login)} with inherit true, set true`, `revoke ${name(other)} from ${name(login)}`,
      mode === 'restricted' ? `alter role ${name(login)} reset role` : `alter role ${name(login)} set role = ${text(names.owner)}`,
      `alter role ${name(login)} ${mode === 'blocked' ? 'nologin' : 'login'} connection limit ${mode === 'restricted' ? 1 : connections}`,
    ]),
    `alter database ${name(names.database)} set default_transaction_read_only = ${mode === 'read_only' ? 'on' : 'off'}`,
    `alter database ${name(names.database)} allow_connections ${mode === 'blocked' ? 'false' : 'true'}`,
  ];
}

/** Inside the database, before a mode without writes: what the restricted role may do with what `role` owns. */
export async function openToRestricted(client: pg.Client, names: Names): Promise<void> {
  for (const role of [names.owner, ...names.logins]) {
    const { rows: schemas } = await client.query<{ name: string }>(`select format('%I', nspname) as name from pg_namespace where pg_get_userbyid(nspowner) = $1`, [role]);
    const { rows: tables } = await client.query<{ name: string }>(`select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p', 'v', 'm', 'f') and pg_get_userbyid(c.relowner) = $1 and n.nspname not like 'pg\\_%'`, [role]);
    if (schemas.length + tables.length === 0) continue;
    await client.query([
      `set role ${name(role)}`,
      ...schemas.map((schema) => `grant usage on schema ${schema.name} to ${name(names.restricted)}`),
      ...tables.map((table) => `grant select, delete, truncate on ${table.name} to ${name(names.restricted)}`),
      'reset role',
    ].join(';\n'));
  }
}

export async function findRoles(client: pg.Client, names: Names): Promise<Set<string>> {
  const { rows } = await client.query<{ rolname: string }>('select rolname from pg_roles where rolname = any($1::text[])', [roleNames(names)]);
  return new Set(rows.map((row) => row.rolname));
}

/** `valid` false: a DROP DATABASE was interrupted; it can only be dropped again. */
export async function findDatabase(client: pg.Client, database: string): Promise<{ valid: boolean } | null> {
  const { rows: [row] } = await client.query<{ valid: boolean }>('select datconnlimit <> -2 as valid from pg_database where datname = $1', [database]);
  return row ?? null;
}

/** Also those the logins have where they have no business. */
export async function endSessions(client: pg.Client, database: string | null, logins: readonly string[]): Promise<void> {
  await client.query('select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and (datname = $1 or usename = any($2::text[]))', [database, logins]);
}

/** Nothing bears the service's names any more. */
export async function dropEverything(client: pg.Client, names: Names): Promise<void> {
  for (const database of [names.database, retainedName(names)]) await client.query(`drop database if exists ${name(database)} with (force)`);
  for (const role of roleNames(names)) await client.query(`drop role if exists ${name(role)}`);
}

/** The database goes by another name, with nobody in it. */
export async function rename(client: pg.Client, from: string, to: string): Promise<void> {
  await client.query(`alter database ${name(from)} allow_connections false`);
  await endSessions(client, from, []);
  await client.query(`alter database ${name(from)} rename to ${name(to)}`);
}

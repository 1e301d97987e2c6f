import pg from 'pg';
import type { Names } from '../../../postgres/rules';
import type { Instance } from './instance';
import { inOneTransaction } from './superuser';

const { escapeIdentifier: name, escapeLiteral: text } = pg;

/** Databases customers may connect to; the other three are closed to them. One whose removal was cut short (-2) can only be dropped. */
export const customerDatabases = `datname <> 'postgres' and not datistemplate and datconnlimit <> -2`;

/** Anybody may call these and write large objects; without them storage cannot grow (src/backend/libpq/be-fsstubs.c). */
const largeObjectWriters = [
  'lo_creat(integer)', 'lo_create(oid)', 'lo_from_bytea(oid, bytea)', 'lo_put(oid, bigint, bytea)', 'lowrite(integer, bytea)', 'lo_truncate(integer, integer)',
  'lo_truncate64(integer, bigint)',
].map((signature) => `pg_catalog.${signature}`).join(', ');

/** What `r_<key>` may do in the schemas of one database. Grants are made in the owners' names, so they fall with their objects. */
function grantsTo(group: string): string {
  return `do $$ declare place name; begin
    for place in select nspname from pg_namespace where nspname <> 'information_schema' and nspname !~ '^pg_' loop
      execute format('grant usage on schema %I to %I', place, ${text(group)});
      execute format('grant select, delete, truncate on all tables in schema %I to %I', place, ${text(group)});
    end loop; end $$`;
}

/**
 * The logins keep what frees space, SELECT, DELETE and TRUNCATE, and can lift none of it
 * (contract postgres.md §6.1, Restricted). Sessions end. Safe twice, and after half of it.
 */
export async function restrict(instance: Instance, names: Names): Promise<void> {
  const databases = await instance.asSuperuser(async (client) => {
    const found = await facts(client, names);
    const login = (role: string) => [
      `revoke ${name(names.owner)} from ${name(role)}`, `grant ${name(names.restricted)} to ${name(role)}`, `alter role ${name(role)} reset role`,
    ];
    await inOneTransaction(client, () => client.query([
      ...(found.restricted ? [] : [`create role ${name(names.restricted)} nologin`]),
      ...found.logins.flatMap(login),
      ...found.databases.flatMap((database) => [`revoke temporary on database ${name(database)} from public`, `grant connect on database ${name(database)} to ${name(names.restricted)}`]),
    ].join(';\n')));
    await endCustomerSessions(client);
    return found.databases;
  });
  for (const database of databases) {
    await instance.asSuperuser((client) => client.query(`${grantsTo(names.restricted)}; revoke execute on function ${largeObjectWriters} from public`), database);
  }
}

/** Everything is as before the restriction, but the number of connections. Safe twice, and after half of it. */
export async function unrestrict(instance: Instance, names: Names): Promise<void> {
  const found = await instance.asSuperuser((client) => facts(client, names));
  if (!found.restricted) return;
  for (const database of found.databases) {
    await instance.asSuperuser((client) => client.query(`drop owned by ${name(names.restricted)}; grant execute on function ${largeObjectWriters} to public`), database);
  }
  const login = (role: string) => [`grant ${name(names.owner)} to ${name(role)}`, `alter role ${name(role)} set role = ${text(names.owner)}`];
  await instance.asSuperuser((client) => inOneTransaction(client, () => client.query([
    ...found.databases.map((database) => `grant temporary on database ${name(database)} to public`),
    ...found.logins.flatMap(login),
    `drop owned by ${name(names.restricted)}`, `drop role ${name(names.restricted)}`,
  ].join(';\n'))));
}

/** Ours, with which a backup may be under way, go on. */
export async function endCustomerSessions(client: pg.Client): Promise<void> {
  await client.query(`select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and usename is distinct from 'holdfast_admin'`);
}

async function facts(client: pg.Client, names: Names): Promise<{ restricted: boolean; logins: string[]; databases: string[] }> {
  const roles = await client.query<{ rolname: string }>('select rolname from pg_roles where rolname = any($1::text[])', [[...names.logins, names.restricted]]);
  const databases = await client.query<{ datname: string }>(`select datname from pg_database where ${customerDatabases} and datallowconn`);
  const found = roles.rows.map((row) => row.rolname);
  return { restricted: found.includes(names.restricted), logins: names.logins.filter((login) => found.includes(login)), databases: databases.rows.map((row) => row.datname) };
}

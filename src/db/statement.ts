import { createHash } from 'node:crypto';
import pg from 'pg';

/** A statement for `pg` that is prepared once per connection, with values and results of the kinds that Prisma uses too. */
export function statement(sql: string, values: readonly unknown[]): pg.QueryConfig {
  return { name: statementName(sql), text: sql, values: values.map(parameter), types };
}

const names = new Map<string, string>();

/** The same name for the same text: 30 hexadecimal digits, as PostgreSQL allows 63 bytes. */
export function statementName(sql: string): string {
  let name = names.get(sql);
  if (!name) {
    name = `h${createHash('sha256').update(sql).digest('hex').slice(0, 30)}`;
    if (names.size < 5_000) names.set(sql, name);
  }
  return name;
}

/** `pg` would write a time in the zone of this process. */
function parameter(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  return Array.isArray(value) ? value.map(parameter) : value;
}

const { builtins } = pg.types;
const bigintArrayOid = 1016;
const readers = new Map<number, (text: string) => unknown>([
  [builtins.INT8, BigInt],
  [bigintArrayOid, (text) => (text === '{}' ? [] : text.slice(1, -1).split(',').map((entry) => (entry === 'NULL' ? null : BigInt(entry))))],
  [builtins.DATE, (text) => new Date(`${text}T00:00:00Z`)],
  [builtins.TIMESTAMP, (text) => new Date(`${text.replace(' ', 'T')}Z`)],
]);

const types: pg.CustomTypesConfig = {
  getTypeParser: (oid, format): unknown => (format === 'binary' ? undefined : readers.get(oid)) ?? pg.types.getTypeParser(oid, format),
};

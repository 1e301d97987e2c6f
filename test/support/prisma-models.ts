import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export type Column = { table: string; column: string; type: string; nullable: boolean };

const scalarTypes: Readonly<Record<string, string>> = {
  String: 'text', Int: 'integer', BigInt: 'bigint', Boolean: 'boolean', Float: 'double precision', Decimal: 'numeric', Json: 'jsonb', Bytes: 'bytea',
  DateTime: 'timestamp(3) without time zone',
};

/** `@db.Name(n)` as PostgreSQL writes the type. */
const nativeTypes: Readonly<Record<string, (bound: string) => string>> = {
  Timestamptz: (bound) => `timestamp(${bound}) with time zone`, VarChar: (bound) => `character varying(${bound})`, Char: (bound) => `character(${bound})`,
  Inet: () => 'inet', Uuid: () => 'uuid', Date: () => 'date', SmallInt: () => 'smallint', Integer: () => 'integer', Citext: () => 'citext', ByteA: () => 'bytea',
  Json: () => 'json', JsonB: () => 'jsonb', Text: () => 'text', Decimal: (bounds) => `numeric(${bounds.replace(/\s/g, '')})`, Real: () => 'real', DoublePrecision: () => 'double precision',
};

/** The columns the Prisma models promise, read from the *.prisma files of a folder. Errors: a native type that is not known here. */
export function prismaColumns(dir: string): Column[] {
  const text = readdirSync(dir).filter((name) => name.endsWith('.prisma')).map((name) => readFileSync(join(dir, name), 'utf8')).join('\n');
  const models = [...text.matchAll(/^model (\w+) \{\n([\s\S]*?)^\}/gm)].map(([, name = '', body = '']) => ({ name, body }));
  return models.flatMap(({ name, body }) => {
    const table = /@@map\("([^"]+)"\)/.exec(body)?.[1] ?? name;
    return body.split('\n').flatMap((line) => columnOf(table, line.trim()));
  });
}

function columnOf(table: string, line: string): Column[] {
  const [, name, type = '', suffix = '', attributes = ''] = /^(\w+)\s+(Unsupported\("[^"]+"\)|\w+)(\?|\[\])?(.*)$/.exec(line) ?? [];
  const scalar = /^Unsupported\("(.+)"\)$/.exec(type)?.[1] ?? scalarTypes[type];
  if (name === undefined || scalar === undefined) return [];
  const [, native, bound = ''] = /@db\.(\w+)(?:\(([^)]*)\))?/.exec(attributes) ?? [];
  const exact = native === undefined ? () => scalar : nativeTypes[native];
  if (!exact) throw new Error(`@db.${native} of ${table}.${name} is not known to test/support/prisma-models.ts.`);
  const column = /@map\("([^"]+)"\)/.exec(attributes)?.[1] ?? name;
  return [{ table, column, type: exact(bound) + (suffix === '[]' ? '[]' : ''), nullable: suffix === '?' }];
}

import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { pino } from 'pino';
import { openDatabase, type Database } from '../../src/db/client';
import { askServer } from './ask-server';

export interface TestDatabase {
  readonly url: string;
  /** Opened on first use, closed after the file. */
  readonly database: Database;
}

/**
 * Gives the file (or the describe block) a database of its own with every migration, dropped afterwards. Call it where tests
 * are declared; its values exist from beforeAll on. `empty`: without migrations.
 */
export function withDatabase(options: { empty?: boolean } = {}): TestDatabase {
  let made: { url: string; drop: () => Promise<void> } | undefined;
  let database: Database | undefined;
  const url = () => {
    if (!made) throw new Error('The test database exists from beforeAll on.');
    return made.url;
  };
  beforeAll(async () => {
    made = await createDatabase(options);
  });
  afterAll(async () => {
    await database?.close();
    await made?.drop();
  });
  return {
    get url() {
      return url();
    },
    get database() {
      return (database ??= openDatabase({ url: url(), max: 20, process: 'test', log: pino({ level: 'silent' }) }));
    },
  };
}

/** The same without jest's hooks: whoever makes it drops it. */
export async function createDatabase(options: { empty?: boolean } = {}): Promise<{ url: string; drop: () => Promise<void> }> {
  const [server = '', template = ''] = (await askServer('database')).split(' ');
  const name = `test_${randomBytes(8).toString('hex')}`;
  await onServer(server, `create database ${name}${options.empty ? '' : ` template ${template}`}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => onServer(server, `drop database if exists ${name} with (force)`) };
}

async function onServer(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { z } from 'zod';
import { withDatabase } from '../support/database';
import { send } from '../support/http';
import { masterKey } from '../support/postgres-api';

jest.setTimeout(120_000);
const root = resolve(__dirname, '../..');
const ready = z.object({ ready: z.literal(true), address: z.string() });
const held = withDatabase();
const running: ChildProcess[] = [];
let ports: number[] = [];

/** API processes as they are deployed behind a balancer: nothing between them but the database. */
beforeAll(async () => {
  ports = await Promise.all([1, 2, 3].map(startApi));
});
afterAll(() => Promise.all(running.map(async (child) => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
})));

async function startApi(): Promise<number> {
  const child = fork(resolve(root, 'src/api.ts'), {
    cwd: root, execArgv: ['-r', resolve(root, 'test/support/typescript.cjs')], stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      PATH: process.env['PATH'], DATABASE_URL: held.url, TEMPORAL_ADDRESS: '127.0.0.1:7', HOLDFAST_MASTER_KEY: masterKey, AUTH_SECRET: 'test-secret-test-secret-test-secret',
      API_ADDR: '127.0.0.1:0', METRICS_ADDR: '127.0.0.1:0', TRUSTED_PROXIES: '127.0.0.1', LOG_LEVEL: 'error',
    },
  });
  running.push(child);
  const [message] = await Promise.race([once(child, 'message'), once(child, 'exit').then(([code]) => { throw new Error(`The API ended with ${code}.`); })]);
  return Number(new URL(`http://${ready.parse(message).address}`).port);
}

const signIn = (i: number, email: string, from: string) => send(ports[i % ports.length] ?? 0, 'POST', '/v1/api/auth/sign-in', {
  headers: { 'x-forwarded-for': from }, json: { email, password: 'wrong password' },
});

test.each([
  ['one account from one address', () => 'ann@people.test', () => '198.51.100.1'],
  ['one account from as many addresses', () => 'bob@people.test', (i: number) => `203.0.113.${i}`],
  ['as many accounts from one address', (i: number) => `guess${i}@people.test`, () => '198.51.100.2'],
])('of a hundred guesses over three processes at %s, five are hashed', async (_, email, from) => {
  const denied = async () => (await held.database.pool.query(`select 1 from audit_entry where action = 'signIn' and outcome = 'denied'`)).rowCount ?? 0;
  const before = await denied();
  const answers = await Promise.all(Array.from({ length: 100 }, (__, i) => signIn(i, email(i), from(i))));
  const codes = answers.map(({ status, body }) => `${status} ${body.code}`).toSorted();
  expect(codes).toEqual([...Array(5).fill('401 invalid_credentials'), ...Array(95).fill('429 rate_limited')]);
  expect(await denied() - before).toBe(5);
});

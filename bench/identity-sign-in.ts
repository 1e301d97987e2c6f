/**
 * Twenty sign-ins at once beside 200 reads a second: what they do to the reads, and what a sign-in costs beside the bare
 * scrypt of equal cost, twenty at once as well. Everything in one process, the load included, so the figures are pessimistic.
 */
import { scrypt } from 'node:crypto';
import { systemCause } from '../src/core/caller';
import { newId } from '../src/core/ids';
import type { Database } from '../src/db/client';
import { inTransaction } from '../src/db/transaction';
import { signIn } from '../src/identity/accounts';
import { loadConfig } from '../src/config';
import { createEngine, readSession } from '../src/identity/service';
import { Secrets } from '../src/core/secrets';
import { Cursors } from '../src/core/cursor';
import { median, print, quantile, withBenchDatabase } from './support/database';

const atOnce = 20;
const seconds = Number(process.env['SECONDS'] ?? 10);
const password = 'a good long passphrase';

async function main(db: Database): Promise<void> {
  const config = loadConfig({
    DATABASE_URL: 'postgresql://unused', TEMPORAL_ADDRESS: '127.0.0.1:7', HOLDFAST_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'), AUTH_SECRET: 'bench-secret-bench-secret-bench-secret',
  });
  const engine = createEngine(db, config);
  const deps = { db, config, engine, secrets: new Secrets(config.HOLDFAST_MASTER_KEY), cursors: new Cursors(config.AUTH_SECRET), productDeletions: [], startAccountMail: () => undefined };
  const passwordHash = await engine.hashPassword(password);
  const emails = Array.from({ length: atOnce }, () => `${newId('usr')}@bench.test`);
  for (const email of emails) await inTransaction(db, (tx) => engine.createUser(tx, { email, displayName: 'Bench', passwordHash, emailVerified: true }));
  const asked = { cause: systemCause('bench'), ip: '127.0.0.1', userAgent: null };
  const { cookie } = await signIn(deps, asked, { email: emails[0] ?? '', password });
  const header = cookie.split(';')[0] ?? '';
  const read = () => readSession({ db, engine, config }, header);
  const idle = await readsDuring(read, new Promise((resolve) => setTimeout(resolve, seconds * 500)));
  const signIns: number[] = [];
  const bare: number[] = [];
  const end = Date.now() + seconds * 1_000;
  const busy = await readsDuring(read, Promise.all(emails.map(async (email) => {
    while (Date.now() < end) signIns.push(await timed(() => signIn(deps, asked, { email, password })));
  })));
  const bareEnd = Date.now() + (seconds * 1_000) / 2;
  await Promise.all(emails.map(async () => {
    while (Date.now() < bareEnd) bare.push(await timed(bareScrypt));
  }));
  print(`reads: p99 ${quantile(idle, 0.99).toFixed(2)} ms idle, ${quantile(busy, 0.99).toFixed(2)} ms beside ${atOnce} sign-ins: ${(quantile(busy, 0.99) / quantile(idle, 0.99)).toFixed(1)} times (target 3)`);
  print(`sign-in: p50 ${median(signIns).toFixed(0)} ms, bare scrypt ${median(bare).toFixed(0)} ms: ${(median(signIns) / median(bare)).toFixed(2)} times (target 2)`);
}

/** The engine's cost: N 16384, r 16, p 1. */
function bareScrypt(): Promise<void> {
  return new Promise((resolve, reject) => {
    scrypt(password, 'salt', 64, { N: 16_384, r: 16, p: 1, maxmem: 128 * 16_384 * 16 * 2 }, (error) => (error ? reject(error) : resolve()));
  });
}

/** 200 a second until the other work is done. */
async function readsDuring(read: () => Promise<unknown>, other: Promise<unknown>): Promise<number[]> {
  const times: Promise<number>[] = [];
  const timer = setInterval(() => times.push(timed(read)), 5);
  await other;
  clearInterval(timer);
  return Promise.all(times);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - begun) / 1e6;
}

void withBenchDatabase(main);

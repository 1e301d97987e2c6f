/**
 * Reservations per second by 8 writers on one counter, in alternating rounds beside 8 writers that do the bare conditional
 * update: once in a transaction of prepared statements, once in the transaction every request of ours runs in. The second
 * ratio is what reserving costs; between the two lies what Prisma's transactions cost.
 */
import type pg from 'pg';
import { reserve } from '../src/billing/service';
import { newId } from '../src/core/ids';
import { rows, type Database } from '../src/db/client';
import { inTransaction } from '../src/db/transaction';
import { median, print, withBenchDatabase } from './support/database';

const writers = 8;
const rounds = Number(process.env['ROUNDS'] ?? 5);
const roundMs = Number(process.env['ROUND_MS'] ?? 3_000);
const target = 0.9;
const room = 1_000_000_000;

async function main(database: Database): Promise<void> {
  const orgId = newId('org');
  const [ours, bare, framed] = [newId('prj'), newId('prj'), newId('prj')];
  const clients = await Promise.all(Array.from({ length: writers }, () => database.pool.connect()));
  const reserveOne = () => inTransaction(database, (tx) => reserve(tx, { orgId, projectId: ours, product: 'postgres', resource: 'postgres.bench', n: 1 }));
  await reserveOne();
  for (const scopeId of [bare, framed]) await database.pool.query('insert into quota_counter (scope_id, resource, org_id) values ($1, $2, $3)', [scopeId, 'postgres.bench', orgId]);
  const updateFramed = () => inTransaction(database, (tx) => rows(tx, bareUpdate, framed, 'postgres.bench', room));
  const results: Record<'ours' | 'bare' | 'framed', number[]> = { ours: [], bare: [], framed: [] };
  for (let round = 0; round < rounds; round++) {
    results.bare.push(await perSecond(clients.map((client) => () => updateBare(client, bare))));
    results.ours.push(await perSecond(clients.map(() => async () => void (await reserveOne()))));
    results.framed.push(await perSecond(clients.map(() => async () => void (await updateFramed()))));
    print(`round ${round + 1}  bare ${results.bare.at(-1)?.toFixed(0)}/s  bare in our transaction ${results.framed.at(-1)?.toFixed(0)}/s  ours ${results.ours.at(-1)?.toFixed(0)}/s`);
  }
  for (const client of clients) client.release();
  const ratioTo = (peer: readonly number[]) => median(results.ours.map((value, i) => value / (peer[i] ?? value))).toFixed(2);
  print(`median: ours ${median(results.ours).toFixed(0)}/s; bare update ${median(results.bare).toFixed(0)}/s, ratio ${ratioTo(results.bare)} (target ${target});`
    + ` bare update in our transaction ${median(results.framed).toFixed(0)}/s, ratio ${ratioTo(results.framed)}`);
}

const bareUpdate = 'update quota_counter set used = used + 1, updated_at = now() where scope_id = $1 and resource = $2 and used + 1 <= $3::bigint returning used::float8 as used';

async function updateBare(client: pg.PoolClient, scopeId: string): Promise<void> {
  await client.query({ name: 'begin', text: 'begin' });
  await client.query({ name: 'bare', text: bareUpdate, values: [scopeId, 'postgres.bench', room] });
  await client.query({ name: 'commit', text: 'commit' });
}

async function perSecond(jobs: readonly (() => Promise<void>)[]): Promise<number> {
  let done = 0;
  const begun = performance.now();
  await Promise.all(jobs.map(async (job) => {
    while (performance.now() - begun < roundMs) {
      await job();
      done++;
    }
  }));
  return (done * 1_000) / (performance.now() - begun);
}

void withBenchDatabase(main);

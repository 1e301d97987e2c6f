/**
 * What billing adds to accepting a Postgres service: the same transaction (a service row, its operation) with and without
 * reservation and subscription, then the first usable moment, one after another in alternation. The peer is the same work as
 * bare prepared SQL.
 */
import type pg from 'pg';
import { openSubscription, reserve, startPlanTime } from '../src/billing/service';
import { newId } from '../src/core/ids';
import type { Database } from '../src/db/client';
import { inTransaction, type Tx } from '../src/db/transaction';
import { openOperation } from '../src/operations/store';
import { median, print, quantile, withBenchDatabase } from './support/database';

const count = Number(process.env['COUNT'] ?? 1_500);
const targetMs = 2;

async function main(database: Database): Promise<void> {
  const orgId = newId('org');
  await inTransaction(database, (tx) => openSubscription(tx, { orgId, projectId: null, product: 'dns', resourceId: orgId, plan: 'launch' }));
  const client = await database.pool.connect();
  const times: Record<'without' | 'with' | 'bare' | 'usable', number[]> = { without: [], with: [], bare: [], usable: [] };
  for (let i = 0; i < count + 100; i++) {
    const projectId = newId('prj');
    const [plain, billed, bare] = [newId('pg'), newId('pg'), newId('pg')];
    const accept = (tx: Tx, resourceId: string) => openOperation(tx, { orgId, projectId, kind: 'bench.accept', resourceId, summary: 'bench', requestId: null });
    const without = await timed(() => inTransaction(database, (tx) => accept(tx, plain)));
    const bills = await timed(() => inTransaction(database, async (tx) => {
      await reserve(tx, { orgId, projectId, product: 'postgres', plan: 'starter', resource: 'postgres.services', n: 1 });
      await openSubscription(tx, { orgId, projectId, product: 'postgres', resourceId: billed, plan: 'starter' });
      return accept(tx, billed);
    }));
    const usable = await timed(() => inTransaction(database, (tx) => startPlanTime(tx, billed, new Date())));
    const peer = await timed(() => billBare(client, { orgId, projectId, resourceId: bare }));
    if (i < 100) continue;
    times.without.push(without);
    times.with.push(bills);
    times.usable.push(usable);
    times.bare.push(peer);
  }
  client.release();
  const added = median(times.with) - median(times.without);
  for (const [name, values] of Object.entries(times)) print(`${name.padEnd(8)} p50 ${median(values).toFixed(2)} ms  p99 ${quantile(values, 0.99).toFixed(2)} ms`);
  print(`added to the accepting transaction: p50 ${added.toFixed(2)} ms (target ${targetMs}); bare SQL with its own transaction ${median(times.bare).toFixed(2)} ms`);
}

/** Counter and subscription as they would be written by hand. */
async function billBare(client: pg.PoolClient, { orgId, projectId, resourceId }: { orgId: string; projectId: string; resourceId: string }): Promise<void> {
  await client.query({ name: 'begin', text: 'begin' });
  await client.query({
    name: 'count', text: `insert into quota_counter as c (scope_id, resource, org_id, project_id, used) values ($1, 'postgres.services.starter', $2, $1, 1)
      on conflict (scope_id, resource) do update set used = c.used + 1 where c.used + 1 <= 5 returning used`, values: [projectId, orgId],
  });
  await client.query({
    name: 'open', text: `insert into subscription (id, org_id, project_id, product, resource_id, plan, plan_version, status) values ($1, $2, $3, 'postgres', $4, 'starter', 1, 'active')`,
    values: [newId('sub'), orgId, projectId, resourceId],
  });
  await client.query({ name: 'commit', text: 'commit' });
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

void withBenchDatabase(main);

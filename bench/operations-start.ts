/**
 * From an accepted request to its end as a client sees it: transaction, start after the commit, workflow, steps on the
 * operation row, and the long poll that hears the end. The peer is Temporal alone in the same run: the same workflow with
 * the same number of activities, started and awaited by a client, without database, steps or notification.
 * Shapes: `local` is one local activity (a ready instance), `five` five ordinary ones (a cold provision).
 */
import { pino } from 'pino';
import { activityInterceptor } from '../activities/steps';
import { newId } from '../src/core/ids';
import { createMetrics } from '../src/core/metrics';
import type { Database } from '../src/db/client';
import { createListener } from '../src/db/listen';
import { inTransaction } from '../src/db/transaction';
import { createDispatcher, type Dispatcher } from '../src/operations/dispatcher';
import { startRelay } from '../src/operations/relay';
import { openOperation, settleOperation, type OperationRow } from '../src/operations/store';
import { createOperationWatch, type OperationWatch } from '../src/operations/watch';
import type { Temporal } from '../src/temporal/connection';
import { startOptions } from '../src/temporal/options';
import { median, print, quantile, withBenchDatabase } from './support/database';
import { withBenchTemporal, withBenchWorker } from './support/temporal';

const count = Number(process.env['COUNT'] ?? 150);
const burst = Number(process.env['BURST'] ?? 200);
const log = pino({ level: 'silent' });
type Shape = 'local' | 'five';

const nothing = async () => undefined;
const fromPool = async ({ serviceId }: { serviceId: string }) => (serviceId.startsWith('local') ? 'available' : 'cold');
const bareActivities = { provisionFromPool: fromPool, ensurePlacement: nothing, ensureInstance: nothing, ensureAccess: nothing, verifyAccess: nothing, markAvailable: nothing };

function productActivities(database: Database) {
  const settle = async ({ operationId }: { operationId: string }) => void (await settleOperation(database.prisma, operationId, 'succeeded'));
  return {
    ...bareActivities,
    provisionFromPool: async (input: { serviceId: string; operationId: string }) => {
      const found = await fromPool(input);
      if (found === 'available') await settle(input);
      return found;
    },
    markAvailable: settle,
  };
}

function accept(database: Database, shape: Shape): Promise<OperationRow> {
  const serviceId = `${shape}_${newId('pg')}`;
  return inTransaction(database, (tx) => openOperation(tx, {
    orgId: newId('org'), projectId: newId('prj'), kind: 'bench.provision', resourceId: serviceId, summary: 'Provision nothing', requestId: null,
    start: { workflow: 'provisionPostgres', workflowId: `bench/${serviceId}`, queue: 'postgres', payload: { serviceId, generation: 1 } },
  }));
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const from = process.hrtime.bigint();
  await run();
  return Number(process.hrtime.bigint() - from) / 1e6;
}

async function repeated(run: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count + 20; i += 1) {
    const ms = await timed(run);
    if (i >= 20) times.push(ms);
  }
  return times;
}

async function measure(database: Database, temporal: Temporal, address: string): Promise<void> {
  const listener = createListener({ url: database.pool.options.connectionString ?? '', process: 'bench', log });
  const watch = createOperationWatch({ database, listener });
  const dispatcher = createDispatcher({ database, temporal, log, metrics: createMetrics('bench') });
  const ours: Record<Shape, number[]> = { local: [], five: [] };
  const bare: Record<Shape, number[]> = { local: [], five: [] };
  await withBenchWorker({ address, queue: 'postgres', activities: productActivities(database), interceptor: activityInterceptor({ database, log }) }, async () => {
    for (const shape of ['local', 'five'] as const) {
      ours[shape] = await repeated(async () => {
        const operation = await accept(database, shape);
        void dispatcher.start(operation);
        await watch.awaitFinal(operation.id, 30_000);
      });
    }
    const relay = startRelay({ database, temporal, listener, log, metrics: createMetrics('bench') });
    await measureBurst(database, watch, dispatcher);
    await relay.stop();
  });
  await withBenchWorker({ address, queue: 'postgres', activities: bareActivities }, async () => {
    for (const shape of ['local', 'five'] as const) {
      bare[shape] = await repeated(() => temporal.client.workflow.execute('provisionPostgres', {
        workflowId: newId('op'), taskQueue: 'postgres', args: [{ serviceId: shape, operationId: 'none', generation: 1 }],
      }));
    }
  });
  for (const shape of ['local', 'five'] as const) report(shape, ours[shape], bare[shape]);
  watch.close();
  await listener.close();
}

/** More at once than may be in flight: the relay does the rest. */
async function measureBurst(database: Database, watch: OperationWatch, dispatcher: Dispatcher): Promise<void> {
  const ms = await timed(() => Promise.all(Array.from({ length: burst }, async () => {
    const operation = await accept(database, 'local');
    void dispatcher.start(operation);
    await watch.awaitFinal(operation.id, 60_000);
  })));
  print(`burst   ${burst} accepted at once, all done after ${(ms / 1_000).toFixed(1)} s; those beyond ${startOptions.inFlightMax} in flight wait two seconds for the relay`);
}

function report(shape: Shape, ours: readonly number[], bare: readonly number[]): void {
  const figures = (times: readonly number[]) => `p50 ${median(times).toFixed(1)} ms, p95 ${quantile(times, 0.95).toFixed(1)} ms`;
  print(`${shape.padEnd(7)} accepted → end known: ${figures(ours)}; Temporal alone: ${figures(bare)}; ratio ${(median(ours) / median(bare)).toFixed(2)}`);
}

void withBenchDatabase((database) => withBenchTemporal((temporal, address) => measure(database, temporal, address)));

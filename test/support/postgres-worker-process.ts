import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { createPostgresActivities } from '../../activities/postgres';
import { activityInterceptor } from '../../activities/steps';
import { loadConfig } from '../../src/config';
import { openCore, openWorker } from '../../src/deps';
import type { Run } from '../../src/postgres/store/runs';
import { bundledWorkflows } from './workflow-lab';

/**
 * A worker of the queue `postgres` that the test kills: `HALTS` says for which service it stands still before or after which
 * step; it tells its parent when it does.
 */
type Halt = { step: string; when: 'before' | 'after' };
const halts: Readonly<Record<string, Halt>> = JSON.parse(process.env['HALTS'] ?? '{}');

async function main(): Promise<void> {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const config = loadConfig();
  const core = openCore(config, 'worker');
  const activities = Object.entries(createPostgresActivities(openWorker(core))).map(([name, activity]) => [name, halting(name, activity)]);
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address: config.TEMPORAL_ADDRESS }), namespace: config.TEMPORAL_NAMESPACE, taskQueue: 'postgres',
    workflowBundle: await bundledWorkflows(), activities: Object.fromEntries(activities),
    interceptors: { activity: [activityInterceptor({ database: core.db, log: core.log })] },
  });
  process.send?.({ ready: true });
  await worker.run();
}

/** The pool is passed over unless a halt is meant for it, so that every ordinary step is reached. */
function halting(name: string, activity: (run: never) => Promise<unknown>) {
  return async (run: Run): Promise<unknown> => {
    const halt = halts[run.serviceId];
    if (name === 'provisionFromPool' && halt && halt.step !== name) return 'cold';
    const call = () => Promise.resolve(Reflect.apply(activity, undefined, [run]));
    if (halt?.step !== name) return call();
    if (halt.when === 'after') await call();
    process.send?.({ halted: run.serviceId });
    return new Promise(() => undefined);
  };
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});

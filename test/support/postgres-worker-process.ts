import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { createPostgresActivities } from '../../activities/postgres';
import { activityInterceptor } from '../../activities/steps';
import { loadConfig } from '../../src/config';
import { openCore, openWorker } from '../../src/deps';
import type { Run } from '../../src/postgres/store/runs';

/**
 * A worker of the queue `postgres` that the test kills. It serves once its parent has said for which service it stands still, and before or after
 * which step: until then it is loaded and waits, so that whoever takes over is there at once however busy the machine is.
 */
type Halt = { step: string; when: 'before' | 'after' };
let halts: Readonly<Record<string, Halt>> = {};

async function main(): Promise<void> {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const config = loadConfig();
  const core = openCore(config, 'worker');
  const activities = Object.entries(createPostgresActivities(openWorker(core))).map(([name, activity]) => [name, halting(name, activity)]);
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address: config.TEMPORAL_ADDRESS }), namespace: config.TEMPORAL_NAMESPACE, taskQueue: 'postgres',
    workflowBundle: { codePath: process.env['WORKFLOW_BUNDLE'] ?? '' }, activities: Object.fromEntries(activities),
    interceptors: { activity: [activityInterceptor({ database: core.db, log: core.log })] },
  });
  process.send?.({ ready: true });
  halts = await told();
  await worker.run();
}

function told(): Promise<Readonly<Record<string, Halt>>> {
  return new Promise((done) => process.once('message', (message: { halts: Record<string, Halt> }) => done(message.halts)));
}

/** The pool is passed over unless a halt is meant for it, so that every ordinary step is reached. */
function halting(name: string, activity: (run: never) => Promise<unknown>) {
  return async (run: Run | undefined): Promise<unknown> => {
    const halt = halts[run?.serviceId ?? ''];
    if (name === 'provisionFromPool' && halt && halt.step !== name) return 'cold';
    const call = () => Promise.resolve(Reflect.apply(activity, undefined, [run]));
    if (halt?.step !== name) return call();
    if (halt.when === 'after') await call();
    process.send?.({ halted: run?.serviceId });
    return new Promise(() => undefined);
  };
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});

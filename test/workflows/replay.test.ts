import { readdir, readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { temporal } from '@temporalio/proto';
import { Worker } from '@temporalio/worker';
import * as workflows from '../../workflows';
import { leaksInHistories } from '../support/canaries';
import { installRuntime } from '../support/temporal';
import { bundledWorkflows } from '../support/workflow-lab';
import { fileOf, recordings } from './recordings';

const dir = join(__dirname, 'histories');
const names = async () => (await readdir(dir)).filter((name) => name.endsWith('.bin')).toSorted();

beforeAll(installRuntime);

test('every recorded history of a released workflow replays with the present code', async () => {
  const histories = await Promise.all((await names()).map(async (name) => {
    const history = temporal.api.history.v1.History.decode(await readFile(join(dir, name)));
    return { workflowId: history.events[0]?.workflowExecutionStartedEventAttributes?.workflowId || name, history, name };
  }));
  expect(histories.length).toBeGreaterThan(0);
  const failed: string[] = [];
  for (const { name, ...one } of histories) {
    for await (const { error } of Worker.runReplayHistories({ workflowBundle: await bundle() }, [one])) if (error) failed.push(`${name}: ${error.message}`);
  }
  expect(failed).toEqual([]);
}, 120_000);

test('a history that the code does not fit is noticed', async () => {
  const history = temporal.api.history.v1.History.decode(await readFile(join(dir, 'deletePostgres.retained.bin')));
  const scheduled = history.events.find((event) => event.activityTaskScheduledEventAttributes);
  if (!scheduled?.activityTaskScheduledEventAttributes) throw new Error('The history has no activity.');
  scheduled.activityTaskScheduledEventAttributes.activityType = { name: 'somethingElse' };
  const errors: string[] = [];
  for await (const { error } of Worker.runReplayHistories({ workflowBundle: await bundle() }, [{ workflowId: 'other', history }])) if (error) errors.push(error.name);
  expect(errors).toEqual(['DeterminismViolationError']);
}, 60_000);

test('every exported workflow has a recorded history, and every recording a file (npm run histories:record)', async () => {
  const recorded = await names();
  expect(recorded).toEqual(recordings.map(fileOf).toSorted());
  expect([...new Set(recordings.map(({ workflow }) => workflow))].toSorted()).toEqual(Object.keys(workflows).toSorted());
});

test('recorded histories hold no address, no secret and nothing of the machine they were made on', async () => {
  const histories = new Map(await Promise.all((await names()).map(async (name) => [name, await readFile(join(dir, name))] as const)));
  expect(leaksInHistories(histories, ['postgres://', 'postgresql://', 'SCRAM-SHA-256', 'PRIVATE KEY', `@${hostname()}`, process.cwd()])).toEqual([]);
});

let made: ReturnType<typeof bundledWorkflows> | undefined;
const bundle = () => (made ??= bundledWorkflows());

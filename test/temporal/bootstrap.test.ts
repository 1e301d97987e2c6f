import { randomBytes } from 'node:crypto';
import { bootstrapTemporal } from '../../src/temporal/bootstrap';
import { searchAttributeNames } from '../../src/temporal/search-attributes';
import { ensureSchedules, type ScheduleDefinition } from '../../src/temporal/schedules';
import { eventually, silent } from '../support/accepted-work';
import { withTemporal } from '../support/temporal';

const server = withTemporal();
const connection = () => server.environment.connection;

async function retentionHours(namespace: string): Promise<number> {
  const { config } = await connection().workflowService.describeNamespace({ namespace });
  return Number(config?.workflowExecutionRetentionTtl?.seconds) / 3600;
}

test('three processes at once make one usable namespace with its retention and search attributes', async () => {
  const namespace = `boot-${randomBytes(6).toString('hex')}`;
  await Promise.all([1, 2, 3].map(() => bootstrapTemporal(connection(), { namespace, retentionHours: 48, log: silent })));
  expect(await retentionHours(namespace)).toBe(48);
  const { customAttributes } = await connection().operatorService.listSearchAttributes({ namespace });
  expect(Object.keys(customAttributes ?? {})).toEqual(expect.arrayContaining(searchAttributeNames));
});

test('a changed retention is taken over at the next start', async () => {
  const namespace = `boot-${randomBytes(6).toString('hex')}`;
  for (const hours of [48, 72, 72]) await bootstrapTemporal(connection(), { namespace, retentionHours: hours, log: silent });
  await eventually(async () => (await retentionHours(namespace)) === 72);
});

const definition: ScheduleDefinition = { id: 'system-test', workflow: 'reconcile', queue: 'system', product: 'system', every: '5 minutes', summary: 'Test it', atStart: true };
const described = () => server.environment.client.schedule.getHandle(definition.id).describe();

test('a schedule is made once, skips overlaps, catches up ten minutes, and runs at the start', async () => {
  await Promise.all([1, 2, 3].map(() => ensureSchedules(server.environment.client, [definition], { correct: true })));
  const { policies, spec, action, info } = await described();
  expect({ overlap: policies.overlap, catchup: policies.catchupWindow, every: spec.intervals?.map(({ every }) => every) }).toEqual({ overlap: 'SKIP', catchup: 600_000, every: [300_000] });
  expect(action).toMatchObject({ type: 'startWorkflow', workflowType: 'reconcile', taskQueue: 'system', workflowId: 'system-test' });
  expect(info.recentActions.length + info.runningActions.length).toBeGreaterThan(0);
});

test('an existing schedule is given the present definition; one that an operator has paused stays paused', async () => {
  const { client } = server.environment;
  await ensureSchedules(client, [definition], { correct: true });
  await client.schedule.getHandle(definition.id).pause('by an operator');
  await ensureSchedules(client, [{ ...definition, every: '10 minutes', atStart: false }], { correct: true });
  const { spec, state } = await described();
  expect({ every: spec.intervals?.map(({ every }) => every), paused: state.paused, note: state.note }).toEqual({ every: [600_000], paused: true, note: 'by an operator' });
});

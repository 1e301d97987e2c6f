import { createDispatcher } from '../../src/operations/dispatcher';
import { getOperation, settleOperation } from '../../src/operations/store';
import { rows } from '../../src/db/client';
import { acceptOperation, silent, temporalOf, testMetrics } from '../support/accepted-work';
import { withDatabase } from '../support/database';
import { withTemporal } from '../support/temporal';

const db = withDatabase();
const server = withTemporal();

const dispatchedAt = async (id: string) => (await rows<{ at: Date | null }>(db.database.prisma, 'select dispatched_at as at from operation where id = $1', id))[0]?.at;

async function withDispatcher<T>(run: (dispatcher: ReturnType<typeof createDispatcher>) => Promise<T>, options: { address?: string; inFlightMax?: number } = {}): Promise<T> {
  const { address = server.address, ...more } = options;
  const temporal = temporalOf({ address, namespace: server.namespace });
  try {
    return await run(createDispatcher({ database: db.database, temporal, log: silent, metrics: testMetrics(), ...more }));
  } finally {
    await temporal.close();
  }
}

test('a start names organisation, project, resource, product and operation, says what it does, and marks the row', async () => {
  const operation = await acceptOperation(db.database, {}, { weight: 8 });
  expect(await withDispatcher((dispatcher) => dispatcher.start(operation))).toBe('started');
  const run = await server.environment.client.workflow.getHandle(operation.workflowId ?? '').describe();
  expect(run.type).toBe('provisionPostgres');
  expect(run.taskQueue).toBe('postgres');
  expect(Object.fromEntries(run.typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]))).toMatchObject({
    OrgId: operation.orgId, ProjectId: operation.projectId, ResourceId: operation.resourceId, Product: 'postgres', Operation: operation.id,
  });
  expect(run.memo).toEqual({ displayName: operation.summary, requestId: operation.requestId });
  expect(await run.staticSummary()).toBe(operation.summary);
  expect(run.priority).toMatchObject({ fairnessKey: operation.orgId, fairnessWeight: 8 });
  expect(await dispatchedAt(operation.id)).toBeInstanceOf(Date);
});

test('the workflow is given ids and generation, nothing else', async () => {
  const operation = await acceptOperation(db.database);
  await withDispatcher((dispatcher) => dispatcher.start(operation));
  const { events } = await server.environment.client.workflow.getHandle(operation.workflowId ?? '').fetchHistory();
  const [payload] = events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
  expect(JSON.parse(Buffer.from(payload?.data ?? []).toString())).toEqual({ serviceId: operation.resourceId, generation: 1, operationId: operation.id });
});

test('starting twice is one run', async () => {
  const operation = await acceptOperation(db.database);
  await withDispatcher((dispatcher) => Promise.all([dispatcher.start(operation), dispatcher.start(operation)]));
  const runs: string[] = [];
  await withDispatcher((dispatcher) => dispatcher.start(operation));
  const handle = server.environment.client.workflow.getHandle(operation.workflowId ?? '');
  runs.push((await handle.describe()).runId);
  await withDispatcher((dispatcher) => dispatcher.start(operation));
  runs.push((await handle.describe()).runId);
  expect(runs[0]).toBe(runs[1]);
});

test('with Temporal away the row stays for the relay, and nothing is thrown', async () => {
  const operation = await acceptOperation(db.database);
  expect(await withDispatcher((dispatcher) => dispatcher.start(operation), { address: '127.0.0.1:1' })).toBe('left');
  expect(await dispatchedAt(operation.id)).toBeNull();
  expect((await getOperation(db.database.prisma, operation.id))?.state).toBe('pending');
});

test('what does not fit is left to the relay: starts in flight are bounded', async () => {
  const operations = await Promise.all([1, 2, 3].map(() => acceptOperation(db.database)));
  const outcomes = await withDispatcher((dispatcher) => Promise.all(operations.map((operation) => dispatcher.start(operation))), { inFlightMax: 2 });
  expect(outcomes).toEqual(['started', 'started', 'left']);
});

test('an operation that was settled by its request has no workflow to start', async () => {
  const operation = await acceptOperation(db.database);
  expect(await withDispatcher((dispatcher) => dispatcher.start({ ...operation, workflow: null, workflowId: null, taskQueue: null }))).toBe('left');
});

test('a start with a signal starts the workflow, and wakes the run it finds instead of another', async () => {
  const first = await acceptOperation(db.database, {}, { signal: 'recheck' });
  await settleOperation(db.database.prisma, first.id, 'succeeded');
  const second = await acceptOperation(db.database, { resourceId: first.resourceId }, { signal: 'recheck' });
  await withDispatcher(async (dispatcher) => {
    for (const operation of [first, second]) expect(await dispatcher.start(operation)).toBe('started');
  });
  const history = await server.environment.client.workflow.getHandle(first.workflowId ?? '').fetchHistory();
  expect((history.events ?? []).flatMap((event) => event.workflowExecutionSignaledEventAttributes?.signalName ?? [])).toEqual(['recheck', 'recheck']);
  expect(await dispatchedAt(second.id)).toBeInstanceOf(Date);
});

import { randomBytes } from 'node:crypto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Runtime } from '@temporalio/worker';
import { pino } from 'pino';
import { bootstrapTemporal } from '../../src/temporal/bootstrap';
import { askServer } from './ask-server';

export interface TestTemporal {
  readonly address: string;
  readonly namespace: string;
  readonly environment: TestWorkflowEnvironment;
}

/**
 * Gives the file a namespace of its own, with our search attributes, on the run's real Temporal server. Call it where tests
 * are declared; its values exist from beforeAll on.
 */
export function withTemporal(): TestTemporal {
  let environment: TestWorkflowEnvironment | undefined;
  const namespace = `test-${randomBytes(8).toString('hex')}`;
  const current = () => {
    if (!environment) throw new Error('The test Temporal exists from beforeAll on.');
    return environment;
  };
  beforeAll(async () => {
    const address = await askServer('temporal');
    installRuntime();
    environment = await TestWorkflowEnvironment.createFromExistingServer({ address, namespace });
    await bootstrapTemporal(environment.connection, { namespace, retentionHours: 24, log: pino({ level: 'silent' }) });
  }, 120_000);
  afterAll(() => environment?.teardown());
  return {
    namespace,
    get address() {
      return current().address;
    },
    get environment() {
      return current();
    },
  };
}

let installed = false;

/** Once per file: the SDK would otherwise log every worker that starts, and every replay that fails. */
export function installRuntime(): void {
  if (!installed) Runtime.install({ logger: silent, telemetryOptions: { logging: { filter: 'error', forward: {} } } });
  installed = true;
}

const nothing = () => undefined;
const silent = { log: nothing, trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing };

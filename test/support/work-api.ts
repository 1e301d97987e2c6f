import type { Server } from 'node:http';
import type { Role } from '../../src/core/caller';
import { Secrets } from '../../src/core/secrets';
import { createListener, type Listener } from '../../src/db/listen';
import type { Database } from '../../src/db/client';
import { acceptedWorkOperations } from '../../src/http/accepted-work';
import { createApp, createHttpServer } from '../../src/http/server';
import type { NewOperation, OperationRow } from '../../src/operations/store';
import { createOperationWatch, type OperationWatch } from '../../src/operations/watch';
import { acceptOperation, silent } from './accepted-work';
import { withDatabase } from './database';
import { masterKey, testConfig, testDeps } from './postgres-api';
import { createTenant, type Tenant } from './tenant';

export interface WorkApi {
  readonly database: Database;
  readonly tenant: Tenant;
  readonly foreign: Tenant;
  readonly watch: OperationWatch;
  /** Accepted work of the tenant's project. */
  accept(more?: Partial<NewOperation>): Promise<OperationRow>;
  /** GET below `/v1/api/orgs/:orgSlug`; as viewer unless said. */
  get(path: string, options?: { tenant?: Tenant; as?: Role | null }): Promise<{ status: number; body: Record<string, unknown> }>;
}

/** The real frame with the routes of accepted work. */
export function withWorkApi(): WorkApi {
  const test = withDatabase();
  const made: { server?: Server; listener?: Listener; watch?: OperationWatch; tenant?: Tenant; foreign?: Tenant; origin: string } = { origin: '' };
  const need = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('The API exists from beforeAll on.');
    return value;
  };
  beforeAll(async () => {
    const config = testConfig(test.url);
    made.tenant = await createTenant(test.database, config.AUTH_SECRET);
    made.foreign = await createTenant(test.database, config.AUTH_SECRET);
    made.listener = createListener({ url: test.url, process: 'test', log: silent });
    made.watch = createOperationWatch({ database: test.database, listener: made.listener });
    const deps = { ...testDeps(test.database, config, new Secrets([masterKey]), []), watch: made.watch };
    const server = createHttpServer(createApp(deps, acceptedWorkOperations));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    made.server = server;
    const address = server.address();
    made.origin = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  });
  afterAll(async () => {
    made.server?.closeAllConnections();
    made.server?.close();
    await made.listener?.close();
  });
  return {
    get database() { return test.database; },
    get tenant() { return need(made.tenant); },
    get foreign() { return need(made.foreign); },
    get watch() { return need(made.watch); },
    accept: (more) => acceptOperation(test.database, { orgId: need(made.tenant).orgId, projectId: need(made.tenant).projectId, ...more }),
    async get(path, { tenant = need(made.tenant), as = 'viewer' } = {}) {
      const response = await fetch(`${made.origin}/v1/api/orgs/${tenant.orgSlug}${path}`, { headers: as === null ? {} : { cookie: tenant.cookies[as] } });
      const body: unknown = await response.json();
      return { status: response.status, body: typeof body === 'object' && body !== null ? { ...body } : {} };
    },
  };
}

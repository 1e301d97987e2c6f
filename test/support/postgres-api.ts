import type { Server } from 'node:http';
import { pino } from 'pino';
import { ensureCatalogue } from '../../src/billing/catalogue';
import { loadConfig, type Config } from '../../src/config';
import { systemClock } from '../../src/core/clock';
import { Cursors } from '../../src/core/cursor';
import type { Role } from '../../src/core/caller';
import { Secrets } from '../../src/core/secrets';
import type { Database } from '../../src/db/client';
import { trustedProxies } from '../../src/http/client-address';
import { createLimiter } from '../../src/http/rate-limit';
import { createApp, createHttpServer } from '../../src/http/server';
import { appendAudit, checkApiKey, createEngine, readSession, recordDenial } from '../../src/identity/service';
import type { OperationRow } from '../../src/operations/store';
import { billingOperations } from '../../src/billing/operations';
import { createLedgerProvider } from '../../src/adapters/billing-provider/ledger';
import { readBooks } from '../../src/billing/store/ledger';
import { changePlan, lockForBilling } from '../../src/postgres/service';
import { postgresOperations } from '../../src/postgres/operations';
import { acceptedAnswer, credentialsAnswer, deletedAnswer, listServicesAnswer, serviceAnswer } from '../../src/postgres/schemas';
import { createPublicGateway } from '../../src/postgres/public-gateway';
import { withDatabase } from './database';
import { createTenant, type Tenant } from './tenant';

export const masterKey = Buffer.alloc(32, 7).toString('base64');
export const authority = { certificate: async () => '-----BEGIN CERTIFICATE-----\ntest\n-----END CERTIFICATE-----\n', file: '/test/tls/ca.pem' };

export type Answer = { status: number; headers: Headers; body: Record<string, unknown> };
export type Ask = (method: string, path: string, options?: { as?: Role | null; body?: unknown; headers?: Record<string, string> }) => Promise<Answer>;

export interface PostgresApi {
  readonly database: Database;
  readonly url: string;
  readonly config: Config;
  readonly secrets: Secrets;
  readonly tenant: Tenant;
  /** What would have been started in Temporal. */
  readonly started: OperationRow[];
  /** A request below the project's prefix; as owner unless said. */
  readonly ask: Ask;
  askFor(tenant: Tenant): Ask;
}

/** The real application with the operations of Postgres on a database of its own; Temporal is a list of what was started. */
export function withPostgresApi(env: Record<string, string> = {}): PostgresApi {
  const test = withDatabase();
  const started: OperationRow[] = [];
  let server: Server | undefined;
  let origin = '';
  let tenant: Tenant | undefined;
  let config: Config | undefined;
  const secrets = new Secrets([masterKey]);
  const need = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('The API exists from beforeAll on.');
    return value;
  };
  beforeAll(async () => {
    config = testConfig(test.url, env);
    await ensureCatalogue(test.database, config);
    tenant = await createTenant(test.database, config.AUTH_SECRET);
    server = createHttpServer(createApp(testDeps(test.database, config, secrets, started), [...postgresOperations, ...billingOperations]));
    await new Promise<void>((done) => server?.listen(0, '127.0.0.1', done));
    const address = server.address();
    origin = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  });
  afterAll(() => new Promise<void>((done) => {
    server?.closeAllConnections();
    if (server) server.close(() => done());
    else done();
  }));
  const askFor = (whose: Tenant): Ask => async (method, path, { as = 'owner', body, headers = {} } = {}) => {
    const response = await fetch(`${origin}/v1/api/orgs/${whose.orgSlug}/projects/${whose.projectSlug}${path}`, {
      method,
      headers: { ...(as === null ? {} : { cookie: whose.cookies[as] }), ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
    });
    return { status: response.status, headers: response.headers, body: bodyOf(await response.text()) };
  };
  return {
    started, secrets, askFor,
    ask: (...args) => askFor(need(tenant))(...args),
    get database() { return test.database; },
    get url() { return test.url; },
    get config() { return need(config); },
    get tenant() { return need(tenant); },
  };
}

export function testConfig(url: string, env: Record<string, string> = {}): Config {
  return loadConfig({
    DATABASE_URL: url, TEMPORAL_ADDRESS: '127.0.0.1:7', HOLDFAST_MASTER_KEY: masterKey, AUTH_SECRET: 'test-secret-test-secret-test-secret', ...env,
  });
}

export function testDeps(db: Database, config: Config, secrets: Secrets, started: OperationRow[]) {
  const engine = createEngine(db, config);
  return {
    db, config, secrets, clock: systemClock, log: pino({ level: 'silent' }), cursors: new Cursors(config.AUTH_SECRET), limiter: createLimiter(db),
    managementRate: { name: 'management', limit: config.RATE_MANAGEMENT_PER_5_MINUTES, periodSeconds: 300 },
    trustedProxies: trustedProxies(config.TRUSTED_PROXIES),
    authenticator: {
      readSession: (cookie: string | undefined, slugs: { orgSlug?: string; projectSlug?: string }) => readSession({ db, engine, config }, cookie, slugs),
      checkApiKey: (authorization: string | undefined) => checkApiKey({ db }, authorization),
    },
    recordDenial: (denial: Omit<Parameters<typeof recordDenial>[1], 'target'>) => recordDenial(db, { ...denial, target: null }),
    dispatcher: { start: async (operation: OperationRow) => void started.push(operation) },
    publicGateway: createPublicGateway(config, authority),
    appendAudit, changePlan: { postgres: changePlan }, lockForChange: { postgres: lockForBilling }, billingProvider: createLedgerProvider({ readInvoice: (ref) => readBooks(db.prisma, ref) }),
  };
}

function bodyOf(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) throw new Error(`not an object: ${text}`);
  return { ...value };
}

/** Bodies of answers as their schemas declare them. */
export const read = {
  accepted: ({ body }: Answer) => acceptedAnswer.parse(body),
  deleted: ({ body }: Answer) => deletedAnswer.parse(body),
  service: ({ body }: Answer) => serviceAnswer.parse(body).service,
  services: ({ body }: Answer) => listServicesAnswer.parse(body),
  credentials: ({ body }: Answer) => credentialsAnswer.parse(body),
};

/** A service accepted over the API. */
export async function createdService(ask: Ask, body: object = {}): Promise<{ serviceId: string; operationId: string }> {
  const answer = await ask('POST', '/postgres/services', { body: { displayName: 'orders', plan: 'starter', ...body } });
  if (answer.status !== 202) throw new Error(`not accepted: ${JSON.stringify(answer.body)}`);
  const { serviceId, operation } = read.accepted(answer);
  return { serviceId, operationId: operation.id };
}

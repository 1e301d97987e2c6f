import type { Server } from 'node:http';
import { pino } from 'pino';
import { createLedgerProvider } from '../../src/adapters/billing-provider/ledger';
import { readBooks } from '../../src/billing/store/ledger';
import { billingOperations, type BillingDeps } from '../../src/billing/operations';
import { systemClock } from '../../src/core/clock';
import { Cursors } from '../../src/core/cursor';
import type { Role } from '../../src/core/caller';
import type { Database } from '../../src/db/client';
import { trustedProxies } from '../../src/http/client-address';
import { createLimiter } from '../../src/http/rate-limit';
import { createApp, createHttpServer } from '../../src/http/server';
import { appendAudit, checkApiKey, createEngine, readSession, recordDenial } from '../../src/identity/service';
import { openDns } from './billing';
import { withDatabase } from './database';
import { testConfig } from './postgres-api';
import { createTenant, type Tenant } from './tenant';

export const ledgerSecrets = [1, 2].map((byte) => `whsec_${Buffer.alloc(24, byte).toString('base64')}`);

export type Answer = { status: number; headers: Headers; body: Record<string, unknown> };
type Options = { as?: Role | null; body?: unknown; under?: 'project' | 'org'; of?: Tenant; headers?: Record<string, string> };

export interface BillingApi {
  readonly database: Database;
  /** Its organisation has a dns subscription, as from its creation. */
  readonly tenant: Tenant;
  readonly newTenant: () => Promise<Tenant>;
  /** A request below /billing, as owner and in the project unless said. */
  ask(method: string, path: string, options?: Options): Promise<Answer>;
  /** What a provider posts: these bytes with these headers. */
  post(path: string, body: string, headers: Record<string, string>): Promise<Answer>;
}

/** The real application with the operations of billing on a database of its own. `changePlan`: what the products do. */
export function withBillingApi(changePlan: BillingDeps['changePlan'] = {}): BillingApi {
  const test = withDatabase();
  let server: Server | undefined;
  let origin = '';
  let tenant: Tenant | undefined;
  const secret = 'test-secret-test-secret-test-secret';
  const newTenant = async () => {
    const made = await createTenant(test.database, secret);
    await openDns(test.database, made.orgId);
    return made;
  };
  beforeAll(async () => {
    tenant = await newTenant();
    server = createHttpServer(createApp(depsOf(test.database, testConfig(test.url, { AUTH_SECRET: secret, LEDGER_WEBHOOK_SECRETS: ledgerSecrets.join(',') }), changePlan), billingOperations));
    await new Promise<void>((done) => server?.listen(0, '127.0.0.1', done));
    const address = server.address();
    origin = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  });
  afterAll(() => new Promise<void>((done) => {
    server?.closeAllConnections();
    if (server) server.close(() => done());
    else done();
  }));
  const own = () => {
    if (!tenant) throw new Error('The API exists from beforeAll on.');
    return tenant;
  };
  return {
    newTenant,
    get database() { return test.database; },
    get tenant() { return own(); },
    async post(path, body, headers) {
      const response = await fetch(`${origin}/v1${path}`, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });
      return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) as Record<string, unknown> };
    },
    async ask(method, path, { as = 'owner', body, under = 'project', of = own(), headers = {} } = {}) {
      const prefix = `/v1/api/orgs/${of.orgSlug}${under === 'project' ? `/projects/${of.projectSlug}` : ''}/billing`;
      const response = await fetch(`${origin}${prefix}${path}`, {
        method, body: body === undefined ? null : JSON.stringify(body),
        headers: { ...(as === null ? {} : { cookie: own().cookies[as] }), ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers, ...(of === own() || as === null ? {} : { cookie: of.cookies[as] }) },
      });
      return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) as Record<string, unknown> };
    },
  };
}

function depsOf(db: Database, config: ReturnType<typeof testConfig>, changePlan: BillingDeps['changePlan']) {
  const engine = createEngine(db, config);
  return {
    db, config, changePlan, billingProvider: createLedgerProvider({ readInvoice: (ref) => readBooks(db.prisma, ref) }), appendAudit, clock: systemClock, log: pino({ level: 'silent' }), cursors: new Cursors(config.AUTH_SECRET), limiter: createLimiter(db),
    managementRate: { name: 'management', limit: config.RATE_MANAGEMENT_PER_5_MINUTES, periodSeconds: 300 },
    trustedProxies: trustedProxies(config.TRUSTED_PROXIES),
    authenticator: {
      readSession: (cookie: string | undefined, slugs: { orgSlug?: string; projectSlug?: string }) => readSession({ db, engine, config }, cookie, slugs),
      checkApiKey: (authorization: string | undefined) => checkApiKey({ db }, authorization),
    },
    recordDenial: (denial: Omit<Parameters<typeof recordDenial>[1], 'target'>) => recordDenial(db, { ...denial, target: null }),
    dispatcher: { start: async () => undefined },
  };
}

import { createServer } from 'node:net';
import { createListener } from '../../src/db/listen';
import { platformOf } from '../../src/dns/rules/platform';
import { platformTransferKeys } from '../../src/dns/rules/transfer-key';
import { DatabaseFeed } from '../../src/edge/dns/database-feed';
import { startDnsServer, type DnsServer } from '../../src/edge/dns/server';
import type { Role } from '../../src/core/caller';
import { silent } from './accepted-work';
import { withApi, type Api } from './api';
import { ask as askServer, lines } from './dns-client';
import { FakeRegistry } from './fake-registry';
import type { Answer } from './http';
import { createTenant, type Tenant } from './tenant';

export interface DnsWorld {
  readonly api: Api;
  readonly registry: FakeRegistry;
  /** A new one for every test: plans allow few zones. */
  readonly tenant: Tenant;
  newTenant(): Promise<Tenant>;
  /** Our name server, as the edge process composes it. */
  readonly server: DnsServer;
  /** A request below the project's prefix. */
  ask(method: string, path: string, ask?: { as?: Role; tenant?: Tenant; json?: unknown; headers?: Record<string, string> }): Promise<Answer>;
  /** A zone of the tenant. */
  zone(domain: string, tenant?: Tenant): Promise<{ id: string; nameservers: string[] }>;
  /** What our server answers: rcode and lines `name type ttl value`. */
  dig(name: string, type: string): Promise<{ rcode: string; answers: string[] }>;
  restartServer(): Promise<void>;
  stopServer(): Promise<void>;
}

/**
 * API, name server and registry on loopback, all of them real; Temporal does not answer. `net`: a third octet of its own for
 * every test file.
 */
export function withDnsWorld(net: number, more: Record<string, string> = {}): DnsWorld {
  const network = `127.0.${net}`;
  const ours = [`${network}.101`, `${network}.102`];
  let registry: FakeRegistry | undefined;
  let server: DnsServer | undefined;
  let port = 0;
  const need = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('It exists from beforeAll on.');
    return value;
  };
  beforeAll(async () => {
    registry = await FakeRegistry.start({ network, port: 0, log: silent });
    registry.delegate('ns.holdfast.test', ['s1.ns.holdfast.test', 's2.ns.holdfast.test'], { glue: { 's1.ns.holdfast.test': ours.slice(0, 1), 's2.ns.holdfast.test': ours.slice(1) } });
    port = await freePort(network);
  });
  const api = withApi(() => ({
    DNS_ROOT_HINTS: need(registry).rootHints.map(({ name, address }) => `${name}=${address}`).join(','), DNS_RESOLVER_PORT: String(need(registry).port), DNS_ALLOW_NON_GLOBAL: '1',
    DNS_SERVERS: ours.map((address) => `${address}:${port}`).join(';'), ...more,
  }));
  const closers: (() => Promise<unknown>)[] = [];
  const startServer = async () => {
    const { config, db, log } = api.deps;
    const listener = createListener({ url: config.DATABASE_URL, process: 'edge', log: silent });
    const feed = new DatabaseFeed({ db, listener, platform: platformOf(config), serverId: 'edge-test', addresses: ours, pollMs: 300, log });
    server = await startDnsServer({
      listen: ours.map((host) => ({ host, port })), feed, rateLimit: { perSecond: 0, exempt: [] },
      transfer: { keys: platformTransferKeys(config.HOLDFAST_MASTER_KEY), allow: [] }, notify: [], nowMs: Date.now, log: silent,
    });
    closers.push(() => listener.close());
  };
  const stopServer = async () => {
    await server?.close();
    server = undefined;
    for (const close of closers.splice(0)) await close();
  };
  const newTenant = () => createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  let current: Tenant | undefined;
  beforeAll(startServer);
  beforeEach(async () => {
    current = await newTenant();
  });
  afterAll(async () => {
    await stopServer();
    await registry?.close();
  });
  const ask: DnsWorld['ask'] = (method, path, { as = 'owner', tenant = need(current), headers = {}, ...rest } = {}) => api.ask(
    method, `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}${path}`, { headers: { cookie: tenant.cookies[as], ...headers }, ...rest },
  );
  return {
    api, ask, stopServer, newTenant,
    get tenant() { return need(current); },
    get registry() { return need(registry); },
    get server() { return need(server); },
    async zone(domain, tenant = need(current)) {
      const { status, body } = await ask('POST', '/dns/zones', { tenant, json: { domain, mode: 'full_hosting' } });
      if (status !== 200) throw new Error(`not created: ${JSON.stringify(body)}`);
      return body.zone;
    },
    async dig(name, type) {
      const answer = await askServer({ host: ours[0] ?? '', port }, name, type);
      return { rcode: answer.rcode, answers: lines(answer.answers).sort() };
    },
    async restartServer() {
      await stopServer();
      await startServer();
    },
  };
}

/** A port nobody listens on at this address. */
async function freePort(network: string): Promise<number> {
  const probe = createServer();
  await new Promise<void>((done) => probe.listen(0, `${network}.101`, done));
  const address = probe.address();
  await new Promise((done) => probe.close(done));
  return typeof address === 'object' && address ? address.port : 0;
}

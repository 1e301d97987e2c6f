import { Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { Registry } from 'prom-client';
import type { EmbeddedBackend } from '../../src/adapters/postgres-backend/embedded';
import { createAuthority } from '../../src/core/certificates';
import { systemCode } from '../../src/core/files';
import { startPostgresGateway, type PostgresGateway } from '../../src/edge/postgres/gateway/gateway';
import type { RouteSource } from '../../src/edge/postgres/gateway/route-table';
import type { Route } from '../../src/postgres/store/routes';
import type { Plan } from '../../src/postgres/rules';
import type { HostSite} from './postgres-host';
import { newService, silent, type TestService } from './postgres-host';

/** Routes as the database would tell them; it can go away. */
export class TestRoutes implements RouteSource {
  readonly routes = new Map<string, Route>();
  away = false;
  asked: string[] = [];
  private readonly listeners = new Set<(serviceId: string | null) => void>();

  /** Changes or adds a route; `quietly`: no gateway hears of it. */
  set(service: TestService, change: Partial<Route> = {}, quietly = false): void {
    const { serviceId, names: { key }, limits: { plan } } = service.ref;
    const former = this.routes.get(serviceId) ?? { serviceId, key, status: 'available', statusReason: null, accessOpen: true, storageState: 'ok', plan, allowedCidrs: [] };
    this.routes.set(serviceId, { ...former, ...change });
    if (!quietly) for (const hear of this.listeners) hear(serviceId);
  }

  async load(): Promise<Route[]> {
    this.requireThere();
    return [...this.routes.values()];
  }

  async find(name: string): Promise<Route | null> {
    this.asked.push(name);
    this.requireThere();
    return this.routes.get(name) ?? [...this.routes.values()].find((route) => route.key === name) ?? null;
  }

  listen(changed: (serviceId: string | null) => void): () => void {
    this.listeners.add(changed);
    return () => void this.listeners.delete(changed);
  }

  private requireThere(): void {
    if (this.away) throw new Error('the database is away');
  }
}

export const authority = createAuthority('Test CA');
export const domain = 'local.pg.test';

export type GatewayStart = { site: HostSite; routes: RouteSource; tlsRequired?: boolean; files?: { certificate: string; key: string } | null };

export async function startGateway({ site, routes, tlsRequired = true, files = null }: GatewayStart): Promise<PostgresGateway & { port: number }> {
  const gateway = await startPostgresGateway({
    addresses: ['127.0.0.1:0'], tlsRequired, routes, runDir: site.runDir, registry: new Registry(), log: silent,
    certificate: {
      directory: join(site.dataDir, 'tls'), files, authority: async () => authority,
      names: { dnsNames: ['localhost', `*.${domain}`], ipAddresses: ['127.0.0.1', '::1'] },
    },
  });
  site.closeLater(() => gateway.drain(0));
  return Object.assign(gateway, { port: Number(gateway.addresses[0]?.split(':').at(-1)) });
}

/** A service that runs and is open, made through the backend alone. */
export async function makeService(backend: EmbeddedBackend, routes: TestRoutes, plan: Plan = 'trial'): Promise<TestService> {
  const service = newService(plan);
  await backend.ensureInstance({ ...service.ref, version: '18' });
  await backend.ensureAccess({ ...service.ref, logins: [service.login], endSessionsOf: [] });
  routes.set(service);
  return service;
}

/** A customer as its driver comes, with the certificate checked. */
export function customer(port: number, service: TestService, change: pg.ClientConfig = {}): pg.Client {
  const client = new pg.Client({
    host: 'localhost', port, user: service.login.name, password: service.password, database: 'app',
    ssl: { ca: authority.certificate, rejectUnauthorized: true }, ...change,
  });
  client.on('error', () => undefined);
  return client;
}

/** The same by a host name that no name server knows. */
export function customerBy(host: string, port: number, service: TestService, change: pg.ClientConfig = {}): pg.Client {
  return customer(port, service, { ...change, host, stream: () => new Loopback() });
}

class Loopback extends Socket {
  override connect(port: unknown): this {
    return super.connect({ port: Number(port), host: '127.0.0.1' });
  }
}

/** What a connection is told: null when it is let in (and it leaves again). */
export async function refusalOf(client: pg.Client): Promise<string | null> {
  try {
    await client.connect();
  } catch (error) {
    return systemCode(error) ?? String(error);
  }
  await client.end();
  return null;
}

import { newId } from '../../src/core/ids';
import type { Role } from '../../src/core/caller';
import type { PolicyView } from '../../src/gateway/schemas';
import { withApi, type Api } from './api';
import type { Answer } from './http';
import { createTenant, type Tenant } from './tenant';

export interface GatewayApi {
  readonly api: Api;
  /** A new one for every test: plans allow few zones, and rates are per zone. */
  readonly tenant: Tenant;
  /** A request below the project's prefix. */
  ask(method: string, path: string, ask?: { as?: Role; tenant?: Tenant; json?: unknown; headers?: Record<string, string> }): Promise<Answer>;
  /** An active zone that our servers answer, with `www` and the apex proxied to this address. */
  zone(options?: { proxied?: boolean; tenant?: Tenant; domain?: string }): Promise<{ id: string; domain: string }>;
  /** A request below the zone's gateway. */
  gateway(zone: { id: string }, method: string, path?: string, ask?: Parameters<GatewayApi['ask']>[2]): Promise<Answer>;
  put(zone: { id: string }, policy: object, more?: { query?: string; headers?: Record<string, string> }): Promise<Answer>;
  policy(zone: { id: string }): Promise<PolicyView>;
  sql(text: string, ...values: unknown[]): Promise<Record<string, unknown>[]>;
  /** A worker of the gateway that is up, as its rows tell. */
  instance(id?: string): Promise<string>;
}

/** The API with a tenant per test. Zones are proven by hand: who answers for a domain is not what these tests are about. */
export function withGatewayApi(more: Record<string, string> = {}): GatewayApi {
  const api = withApi({ DNS_ALLOW_NON_GLOBAL: '1', ...more });
  let current: Tenant | undefined;
  let zones = 0;
  beforeEach(async () => {
    current = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  });
  const tenantOf = () => {
    if (!current) throw new Error('The tenant exists from beforeEach on.');
    return current;
  };
  const sql: GatewayApi['sql'] = async (text, ...values) => (await api.deps.db.pool.query(text, values)).rows;
  const ask: GatewayApi['ask'] = (method, path, { as = 'owner', tenant = tenantOf(), headers = {}, ...rest } = {}) => api.ask(
    method, `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}${path}`, { headers: { cookie: tenant.cookies[as], ...headers }, ...rest },
  );
  const gateway: GatewayApi['gateway'] = (zone, method, path = '', asked = {}) => ask(method, `/dns/zones/${zone.id}/security-gateway${path}`, asked);
  return {
    api, ask, gateway, sql,
    get tenant() { return tenantOf(); },
    async zone({ proxied = true, tenant = tenantOf(), domain = `gw${++zones}-${newId('zone').slice(-6)}.test` } = {}) {
      const { body } = await ask('POST', '/dns/zones', { tenant, json: { domain, mode: 'full_hosting' } });
      const { id } = body.zone;
      if (proxied) {
        for (const name of ['@', 'www']) {
          const { status, text } = await ask('POST', `/dns/zones/${id}/records`, { tenant, json: { type: 'A', name, value: '127.0.0.1', proxied: true } });
          if (status !== 200) throw new Error(text);
        }
      }
      await sql(`update dns_zone set status = 'active', served = true, activated_at = now(), next_check_at = now() + interval '1 day' where id = $1`, id);
      return { id, domain };
    },
    put: (zone, policy, { query = '', headers = {} } = {}) => gateway(zone, 'PUT', query, { json: policy, headers }),
    policy: async (zone) => (await gateway(zone, 'GET')).body.policy,
    async instance(id = newId('req')) {
      await sql(`insert into gateway_instance (id, state) values ($1, 'ready') on conflict (id) do update set heartbeat_at = now(), state = 'ready'`, id);
      return id;
    },
  };
}

import { pino } from 'pino';
import { createPostgresActivities, type PostgresActivityDeps } from '../../activities/postgres';
import { ensureCatalogue } from '../../src/billing/catalogue';
import type { Role } from '../../src/core/caller';
import { createMetrics } from '../../src/core/metrics';
import { Secrets } from '../../src/core/secrets';
import type { Database } from '../../src/db/client';
import { inTransaction } from '../../src/db/transaction';
import type { Alert } from '../../src/operations/alerts';
import { acceptPlanChange } from '../../src/billing/change-plan';
import { resumeService, rotateCredentials, suspendService } from '../../src/postgres/change-requests';
import { deleteService } from '../../src/postgres/deletion';
import { retryService, undeleteService } from '../../src/postgres/revival';
import type { RotateCredentials } from '../../src/postgres/schemas';
import { createPublicGateway } from '../../src/postgres/public-gateway';
import type { Plan } from '../../src/postgres/rules';
import { changePlan, createService, type Accepted } from '../../src/postgres/service';
import type { Change } from '../../src/postgres/state';
import { registerHost } from '../../src/postgres/store/hosts';
import type { Run } from '../../src/postgres/store/runs';
import { FakeBackend } from '../../src/adapters/postgres-backend/fake';
import { FakePostgresCustomer } from './fake-postgres-customer';
import { authority, masterKey, testConfig } from './postgres-api';
import { createTenant, type Tenant } from './tenant';

/** A region of its own with one host on a fake backend: services are accepted by the product's own code, then worked on. */
export interface PostgresWorld {
  readonly database: Database;
  readonly tenant: Tenant;
  readonly region: string;
  readonly backend: FakeBackend;
  readonly customer: FakePostgresCustomer;
  readonly secrets: Secrets;
  readonly cancelled: string[];
  readonly alerts: Alert[];
  readonly deps: PostgresActivityDeps;
  readonly activities: ReturnType<typeof createPostgresActivities>;
  create(plan?: Plan): Promise<Run>;
  /** A service that is available. */
  available(plan?: Plan): Promise<string>;
  /** `plan`: through billing, as a customer asks for it. */
  change(serviceId: string, change: Change, wish?: { rotate?: RotateCredentials; plan?: Plan }): Promise<Run & { change: Change }>;
  /** Deleted, with its data retained. */
  deleted(plan?: Plan): Promise<string>;
  undelete(serviceId: string): Promise<Run & { source: 'retained'; seconds: number }>;
  retry(serviceId: string): Promise<Run>;
  remove(serviceId: string, options?: { purge?: boolean }): Promise<Run>;
  /** Everything there is of a service, for comparison. */
  stateOf(serviceId: string): Promise<ServiceState>;
}

export type ServiceState = {
  status: string; statusReason: string | null; phase: string | null; accessOpen: boolean; placed: boolean; credential: string; hasSecret: boolean;
  operations: { kind: string; state: string; errorCode: string | null }[]; subscription: string | null; openSpans: number; counted: number;
  host: { services: number; reservedBytes: number }; instance: boolean; retained: boolean;
};

let regions = 0;

export async function createPostgresWorld(database: Database, options: { capacityBytes?: number } = {}): Promise<PostgresWorld> {
  const config = testConfig('postgres://x/x');
  await ensureCatalogue(database, config);
  const tenant = await createTenant(database, config.AUTH_SECRET);
  const region = `region-${process.pid}-${++regions}`;
  await registerHost(database.prisma, { name: `host-${region}`, region, backend: 'embedded', capacityBytes: options.capacityBytes ?? 10 ** 12, maxServices: 100 });
  const backend = new FakeBackend();
  const customer = new FakePostgresCustomer();
  const secrets = new Secrets([masterKey]);
  const cancelled: string[] = [];
  const alerts: Alert[] = [];
  const deps: PostgresActivityDeps = {
    db: database, secrets, log: pino({ level: 'silent' }), postgresBackend: backend, postgresCustomer: customer,
    publicGateway: createPublicGateway(config, authority), cancelRun: async (id) => void cancelled.push(id), alerts: { raise: (_tx, alert) => void alerts.push(alert) }, config, metrics: createMetrics('test'),
    attendOverdueServices: async () => ({ restarted: 0, overdue: 0 }),
  };
  const activities = createPostgresActivities(deps);
  const create = (plan: Plan = 'starter') => accept(database, tenant, region, plan);
  const available = async (plan?: Plan) => {
    const run = await create(plan);
    if (await activities.provisionFromPool(run) !== 'available') throw new Error('The service did not become available.');
    return run.serviceId;
  };
  return {
    database, tenant, region, backend, customer, secrets, cancelled, alerts, deps, activities, create, available,
    change: (serviceId, change, wish = {}) => requestChange(database, tenant, serviceId, { change, ...wish }),
    deleted: async (plan) => {
      const serviceId = await available(plan);
      const removal = await requestRemoval(database, tenant, serviceId, false);
      for (const step of ['blockAccess', 'retainInstance', 'destroyCredentials', 'markDeleted'] as const) await activities[step](removal);
      return serviceId;
    },
    undelete: async (serviceId) => ({ ...await requestAgain(database, tenant, serviceId, undeleteService), source: 'retained', seconds: 600 }),
    retry: (serviceId) => requestAgain(database, tenant, serviceId, retryService),
    remove: (serviceId, { purge = false } = {}) => requestRemoval(database, tenant, serviceId, purge),
    stateOf: (serviceId) => stateOf(database, backend, serviceId),
  };
}

export function callerOf(tenant: Tenant, role: Role) {
  return {
    kind: 'user', userId: tenant.userIds[role], sessionId: 'ses_test', email: 'a@test.test', displayName: 'A', freshUntil: new Date(Date.now() + 60_000), role,
    org: { id: tenant.orgId, slug: tenant.orgSlug, displayName: 'Test', status: 'active' },
    project: { id: tenant.projectId, slug: tenant.projectSlug, displayName: 'Default', status: 'active' },
  } as const;
}

const cause = { actor: { kind: 'user', id: 'usr_test', displayName: 'A' }, action: 'test', requestId: null, ip: null } as const;

function accept(database: Database, tenant: Tenant, region: string, plan: Plan): Promise<Run> {
  return inTransaction(database, async (tx) => {
    const { service, operation } = await createService(tx, {
      caller: callerOf(tenant, 'owner'), body: { displayName: 'orders', plan }, place: { region, version: '18', isolation: 'instance' }, cause,
    });
    return { serviceId: service.id, operationId: operation.id, generation: 1 };
  });
}

async function requestChange(
  database: Database, tenant: Tenant, serviceId: string, { change, rotate = {}, plan = 'launch' }: { change: Change; rotate?: RotateCredentials; plan?: Plan },
): Promise<Run & { change: Change }> {
  const request = { caller: callerOf(tenant, 'owner'), serviceId, cause };
  return inTransaction(database, async (tx) => {
    switch (change) {
      case 'rotate': return { ...runOf(await rotateCredentials(tx, { ...request, body: rotate })), change };
      case 'suspend': return { ...runOf(await suspendService(tx, request)), change };
      case 'resume': return { ...runOf(await resumeService(tx, request)), change };
      case 'plan': {
        const [subscription] = await tx.rows<{ id: string }>(`select id from subscription where resource_id = $1 and status <> 'canceled'`, [serviceId]);
        const { operation } = await acceptPlanChange(tx, { orgId: tenant.orgId, projectId: tenant.projectId, subscriptionId: subscription?.id ?? '', plan }, { cause, products: { postgres: changePlan } });
        return { serviceId, operationId: operation.id, generation: Number(operation.payload['generation']), change };
      }
    }
  });
}

function requestAgain(database: Database, tenant: Tenant, serviceId: string, ask: typeof retryService): Promise<Run> {
  return inTransaction(database, async (tx) => runOf(await ask(tx, { caller: callerOf(tenant, 'owner'), serviceId, cause })));
}

function runOf({ service, operation }: Accepted): Run {
  return { serviceId: service.id, operationId: operation.id, generation: service.generation };
}

function requestRemoval(database: Database, tenant: Tenant, serviceId: string, purge: boolean): Promise<Run> {
  return inTransaction(database, async (tx) => {
    const { service, operation } = await deleteService(tx, { caller: callerOf(tenant, 'owner'), serviceId, purge, cause });
    if (!operation) throw new Error('There is nothing to follow.');
    return { serviceId, operationId: operation.id, generation: service.generation };
  });
}

async function stateOf({ pool }: Database, backend: FakeBackend, serviceId: string): Promise<ServiceState> {
  const { rows: [row] } = await pool.query(`
    select s.status, s.status_reason as "statusReason", s.phase, s.access_open as "accessOpen", s.host_id is not null as placed,
      (select c.state from postgres_credential c where c.service_id = s.id order by case c.state when 'current' then 0 when 'pending' then 1 when 'previous' then 2 else 3 end, version desc limit 1) as credential,
      exists (select from postgres_credential c where c.service_id = s.id and (c.secret_sealed is not null or c.verifier_sealed is not null)) as "hasSecret",
      (select coalesce(jsonb_agg(jsonb_build_object('kind', o.kind, 'state', o.state, 'errorCode', o.error_code) order by o.created_at, o.id), '[]') from operation o where o.resource_id = s.id) as operations,
      (select status from subscription where resource_id = s.id order by created_at desc limit 1) as subscription,
      (select count(*)::int from usage_span where resource_id = s.id and upper_inf(span)) as "openSpans",
      (select coalesce(sum(used), 0)::int from quota_counter where scope_id = s.project_id and resource like 'postgres.services%') as counted,
      (select jsonb_build_object('services', h.services, 'reservedBytes', h.reserved_bytes) from postgres_host h where h.region = s.region) as host
    from postgres_service s where s.id = $1`, [serviceId]);
  return { ...row, instance: backend.instances.has(serviceId), retained: backend.retained.has(serviceId) };
}

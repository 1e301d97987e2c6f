import type { Config } from '../config';
import { openSubscription, reserve } from '../billing/service';
import type { Cause, ProjectCaller } from '../core/caller';
import type { Clock } from '../core/clock';
import type { Cursors } from '../core/cursor';
import { AppError, invalid, type Issue } from '../core/errors';
import { newId } from '../core/ids';
import { readPage, type Page, type PageRequest } from '../core/page';
import type { Secrets } from '../core/secrets';
import type { Database } from '../db/client';
import type { Tx } from '../db/transaction';
import { appendAudit, type AuditChange } from '../identity/service';
import { openOperation, type OperationRow } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import { invalidState, noService, quotaResource } from './faults';
import { lifetimes, versions } from './retention';
import { isolationOf, namesOf, workWeights } from './rules';
import type { CreateService, UpdateService } from './schemas';
import type { Status } from './state';
import { listRegions } from './store/hosts';
import { findService, insertService, listServices, lockService, updateSettings, type ServiceRow } from './store/services';
import type { Address, Trust } from './view';

export { countUndeleted as countServices } from './store/services';
export { markChanged, markChangeFailed } from './changes';
export { changePlan, lockForBilling, resumeByOperator, resumeFromPayment, suspendByOperator, suspendForPayment } from './change-requests';
export { markBackupComplete, markBackupExpired, markBackupFailed, startDueBackups, type BackupFailure, type BackupRun } from './backups';
export { backupDaysOf } from './retention';
export { markDeleted, requestDeletion } from './deletion';
export { markOverlapEnded } from './overlaps';
export { markUndeleteFailed } from './revival';
export { billClosedHours, judgeStorage, metricsOf } from './storage';
export { advanceTrials, type TrialsAdvanced } from './trials';
export { markPurged } from './lifecycle';
export { markAvailable, markProvisionFailed, type ProvisionFailure } from './provisioning';

/** Where customers connect and how they know it is us; null where a service is reached on its own server. */
export interface PublicGateway {
  addressOf(service: Pick<ServiceRow, 'id' | 'region' | 'host' | 'port' | 'isolation'>): Address;
  trust(service: Pick<ServiceRow, 'isolation' | 'hostId'>): Promise<Trust>;
}

export interface PostgresDeps {
  readonly db: Database;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly secrets: Secrets;
  readonly limiter: { take(rule: { name: string; limit: number; periodSeconds: number }, key: string): Promise<unknown> };
  readonly publicGateway: PublicGateway;
  readonly config: Pick<Config, 'PG_REGION' | 'PG_BACKEND' | 'RATE_REVEAL_PER_MINUTE'>;
}

const unpagedMax = 1_000;

export type Place = { region: string; version: string; isolation: 'instance' | 'database' };

/** Regions that take services, the default first. An instance host's region is offered before it has reported, a registered server's once a worker has read of it. */
export async function regionsOf(deps: PostgresDeps): Promise<{ slug: string; isolation: Place['isolation']; versions: string[] }[]> {
  const { PG_REGION: own, PG_BACKEND: backend } = deps.config;
  const known = await listRegions(deps.db.prisma, backend);
  const slugs = [...(backend === 'embedded' || known.includes(own) || known.length === 0 ? [own] : []), ...known.filter((region) => region !== own)];
  return slugs.map((slug) => ({ slug, isolation: isolationOf(backend), versions: [...versions] }));
}

/** Errors: `validation_error` for a region that is not offered, or a version not offered there. */
export async function choosePlace(deps: PostgresDeps, wish: Pick<CreateService, 'region' | 'version' | 'allowedCidrs'>): Promise<Place> {
  const regions = await regionsOf(deps);
  const region = wish.region === undefined ? regions[0] : regions.find(({ slug }) => slug === wish.region);
  const issues: Issue[] = [];
  if (!region) issues.push({ path: 'region', message: `must be one of ${regions.map(({ slug }) => slug).join(', ')}` });
  const offered = region?.versions ?? [...versions];
  const version = wish.version ?? offered[0];
  if (version === undefined || !offered.includes(version)) issues.push({ path: 'version', message: `must be one of ${offered.join(', ')}` });
  if (region) issues.push(...networkIssues(region.isolation, wish.allowedCidrs));
  if (!region || version === undefined || issues.length > 0) throw invalid(issues);
  return { region: region.slug, version, isolation: region.isolation };
}

/** Where customers connect to the server itself, nobody of ours could keep a network out. */
function networkIssues(isolation: Place['isolation'], allowedCidrs: readonly string[] | undefined): Issue[] {
  if (isolation === 'instance' || !allowedCidrs || allowedCidrs.length === 0) return [];
  return [{ path: 'allowedCidrs', message: 'must be empty: no gateway stands in front of this service' }];
}

export type Accepted = { service: ServiceRow; operation: OperationRow };

/**
 * The service is provisioning and its operation is open, or nothing happened.
 * Errors: 402 of billing (`plan_limit_reached`, `trial_already_used`, `payment_required`, `spend_limit_reached`), before anything is written.
 */
export async function createService(
  tx: Tx, request: { caller: ProjectCaller; body: CreateService; place: Place; cause: Cause },
): Promise<Accepted> {
  const { caller: { org, project }, body, place, cause } = request;
  if (project.status !== 'active') throw new AppError('invalid_state', 'The project is being deleted.', { status: project.status });
  const owner = { orgId: org.id, projectId: project.id };
  await reserve(tx, { ...owner, product: 'postgres', plan: body.plan, resource: quotaResource, n: 1 });
  const id = newId('pg');
  const service = await insertService(tx, {
    id, ...owner, displayName: body.displayName, plan: body.plan, ...place, names: namesOf(id, place.isolation),
    allowedCidrs: body.allowedCidrs ?? [], deletionProtection: body.deletionProtection ?? false, trialDays: lifetimes[body.plan].trialDays,
  });
  await openSubscription(tx, { ...owner, product: 'postgres', resourceId: id, plan: body.plan });
  const operation = await openOperation(tx, {
    ...owner, kind: 'postgres.provision', resourceId: id, summary: `Provision Postgres "${body.displayName}" (${body.plan})`, requestId: cause.requestId,
    start: {
      workflow: 'provisionPostgres', workflowId: workflowIds.provisionPostgres(id), queue: 'postgres', payload: { serviceId: id, generation: 1 },
      weight: workWeights[body.plan],
    },
  });
  appendAudit(tx, {
    ...owner, cause, outcome: 'done', target: { type: 'postgresService', id },
    changes: [{ field: 'displayName', from: null, to: body.displayName }, { field: 'plan', from: null, to: body.plan }, { field: 'status', from: null, to: 'provisioning' }],
  });
  return { service: { ...service, operationId: operation.id }, operation };
}

/** Errors: `not_found` for what is absent, foreign, or deleted and not asked for. */
export async function getService(deps: PostgresDeps, projectId: string, serviceId: string, options: { deleted: boolean }): Promise<ServiceRow> {
  const service = await findService(deps.db.prisma, projectId, serviceId);
  if (!service || (service.status === 'deleted' && !options.deleted)) throw noService();
  return service;
}

/** Services of the project, newest first. Errors: `invalid_cursor`. */
export function pageServices(deps: PostgresDeps, projectId: string, query: PageRequest & { status?: Status | undefined }): Promise<Page<ServiceRow>> {
  const status = query.status ?? null;
  return readPage(deps.cursors, { list: 'postgres.services', projectId, status }, query, {
    limitDefault: unpagedMax,
    keyOf: (row) => [row.createdAt.toISOString(), row.id],
    fetch: (after, limit) => listServices(deps.db.prisma, { projectId, status, after, limit }),
  });
}

/** Settings hold from the commit on. Errors: `not_found`, `invalid_state` while deleting. */
export async function updateService(
  tx: Tx, request: { caller: ProjectCaller; serviceId: string; body: UpdateService; cause: Cause },
): Promise<ServiceRow> {
  const { caller: { org, project }, serviceId, body, cause } = request;
  const service = await lockService(tx, project.id, serviceId);
  if (!service || service.status === 'deleted') throw noService();
  if (service.status === 'deleting') throw invalidState(service, 'The service is being deleted.');
  const issues = networkIssues(service.isolation, body.allowedCidrs);
  if (issues.length > 0) throw invalid(issues);
  await updateSettings(tx, serviceId, {
    displayName: body.displayName ?? null, deletionProtection: body.deletionProtection ?? null, allowedCidrs: body.allowedCidrs ?? null,
  });
  const changed = await lockService(tx, project.id, serviceId);
  if (!changed) throw noService();
  const changes = (['displayName', 'deletionProtection', 'allowedCidrs'] as const)
    .filter((field) => body[field] !== undefined)
    .map((field): AuditChange => ({ field, from: service[field], to: changed[field] }));
  appendAudit(tx, { orgId: org.id, projectId: project.id, cause, outcome: 'done', target: { type: 'postgresService', id: serviceId }, changes });
  return changed;
}

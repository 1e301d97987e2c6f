import { heartbeat } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { Config } from '../../src/config';
import { AppError } from '../../src/core/errors';
import { Superseded, TryLater } from '../../src/core/job-errors';
import type { Log } from '../../src/core/log';
import type { Metrics } from '../../src/core/metrics';
import type { Secrets } from '../../src/core/secrets';
import type { Database } from '../../src/db/client';
import type { Alerts } from '../../src/operations/alerts';
import type { PostgresBackend, PostgresCustomer, Ref } from '../../src/postgres/ports';
import { namesOf, planLimits } from '../../src/postgres/rules';
import type { PublicGateway } from '../../src/postgres/service';
import type { Status } from '../../src/postgres/state';
import { loadRun, type Run } from '../../src/postgres/store/runs';
import type { ServiceRow } from '../../src/postgres/store/services';
import type { CancelRun } from '../../src/temporal/cancel';

export interface PostgresActivityDeps {
  readonly db: Database;
  readonly secrets: Secrets;
  readonly log: Log;
  readonly postgresBackend: PostgresBackend;
  readonly postgresCustomer: PostgresCustomer;
  readonly publicGateway: PublicGateway;
  readonly cancelRun: CancelRun;
  readonly alerts: Alerts;
  readonly config: Pick<Config, 'ACCOUNT_MAIL'>;
  readonly metrics: Pick<Metrics, 'postgresServices' | 'postgresSilent'>;
  /** Services past their deadline are raised as alerts and have a run again. */
  readonly attendOverdueServices: (beat: () => void) => Promise<{ restarted: number; overdue: number }>;
}

/** The service, while this run owns it in one of the statuses. Errors: Superseded. */
export async function requireRun(deps: Pick<PostgresActivityDeps, 'db'>, run: Run, statuses: readonly Status[]): Promise<ServiceRow> {
  return ownedBy(await loadRun(deps.db.prisma, run, statuses));
}

/** Errors: Superseded for what a compare-and-set did not find. */
export function ownedBy<T>(found: T | null | false): T {
  if (found === null || found === false) throw new Superseded();
  return found;
}

/** A placed service as its backend knows it. */
export function refOf(service: ServiceRow & { hostId: string }): Ref & { version: string } {
  const { id, generation, hostId, instanceRef, version, isolation, plan } = service;
  return { serviceId: id, generation, hostId, instanceRef, version, names: namesOf(id, isolation), limits: planLimits[plan] };
}

/**
 * The same for an undo, which speaks for the next generation: a call of the undone run that arrives late is refused, and the next
 * intent, which has at least that generation, is not.
 */
export function undoRefOf(service: ServiceRow & { hostId: string }): Ref & { version: string } {
  return { ...refOf(service), generation: service.generation + 1 };
}

export function isPlaced(service: ServiceRow): service is ServiceRow & { hostId: string } {
  return service.hostId !== null;
}

/** The same, where an earlier step must have placed it. */
export function placed(service: ServiceRow): ServiceRow & { hostId: string } {
  if (!isPlaced(service)) throw new AppError('backend_error', 'The service has no host.');
  return service;
}

/**
 * A call to the backend, heartbeating while it lasts. Errors: Superseded when a newer intent owns the service; TryLater for a fault of the
 * moment; `backend_error` when the fence refuses although nothing newer was accepted: then this intent can never succeed.
 */
export async function onBackend<T>(deps: Pick<PostgresActivityDeps, 'db'>, run: Run, call: () => Promise<T>): Promise<T> {
  const beat = setInterval(() => heartbeat(), 5_000);
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof AppError)) throw new TryLater('The backend did not answer.', { cause: error });
    if (error.code === 'backend_error') throw new TryLater('The backend could not do it.', { cause: error });
    if (error.code !== 'stale_generation') throw error;
    await requireRun(deps, run, ['provisioning', 'updating', 'deleting']);
    throw new AppError('backend_error', 'The backend holds a newer generation than we do.', {}, { cause: error });
  } finally {
    clearInterval(beat);
  }
}

/** The same code, but another attempt may help. */
export function retryable(error: unknown): unknown {
  return error instanceof AppError ? ApplicationFailure.create({ type: error.code, message: error.message }) : error;
}

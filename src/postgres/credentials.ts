import type { Cause, ProjectCaller, Role } from '../core/caller';
import { AppError } from '../core/errors';
import { requireFresh } from '../core/freshness';
import { inTransaction } from '../db/transaction';
import { may } from '../identity/permissions';
import { appendAudit, currentRole } from '../identity/service';
import { invalidState, noService } from './faults';
import { getService, type PostgresDeps } from './service';
import type { CredentialsView } from './schemas';
import { revealable, type Status } from './state';
import { findCredentials, secretAad, type Credentials } from './store/credentials';
import { findService, type ServiceRow } from './store/services';
import { viewCredentials } from './view';

export type Shown = { connectionString: string | null; credentials: CredentialsView };

/** Credentials with the password masked; from provisioning on. Errors: `not_found`, `invalid_state` while deleting. */
export async function maskedCredentials(deps: PostgresDeps, caller: ProjectCaller, serviceId: string): Promise<Shown> {
  const service = await getService(deps, caller.project.id, serviceId, { deleted: false });
  if (service.status === 'deleting') throw invalidState(service, 'The service is being deleted.');
  const found = await findCredentials(deps.db.prisma, serviceId);
  if (!found) throw noService();
  return show(deps, service, found, null);
}

/**
 * The password, in this order and no other (contract postgres.md §4.3): permission, fresh session, rate, status, audit row
 * committed, opened, answered. No audit, no secret.
 * Errors: `forbidden`, `reauthentication_required`, `rate_limited`, `not_found`, `invalid_state`.
 */
export async function revealCredentials(deps: PostgresDeps, request: { caller: ProjectCaller; serviceId: string; cause: Cause }): Promise<Shown> {
  const { caller } = request;
  requireReveal(caller.role);
  requireFresh(caller, deps.clock.now());
  await deps.limiter.take({ name: 'postgres-reveal', limit: deps.config.RATE_REVEAL_PER_MINUTE, periodSeconds: 60 }, caller.userId);
  const { service, found } = await recordReveal(deps, request);
  const { shown } = found;
  if (shown.secretSealed === null) throw invalidState(service, 'The service has no password yet.');
  return show(deps, service, found, deps.secrets.open(shown.secretSealed, secretAad(shown)));
}

function requireReveal(role: Role | null): void {
  if (role !== null && may(role, 'postgres:credentials')) return;
  throw new AppError('forbidden', 'Your role does not include postgres:credentials. Ask an owner of the organisation.', { required: 'postgres:credentials' });
}

/** What is revealed is read in the transaction that records it, and so is the role: who was demoted while this waited gets nothing. */
function recordReveal(
  deps: PostgresDeps, { caller, serviceId, cause }: { caller: ProjectCaller; serviceId: string; cause: Cause },
): Promise<{ service: ServiceRow; found: Credentials }> {
  return inTransaction(deps.db, async (tx) => {
    requireReveal(await currentRole(tx, caller.org.id, caller.userId));
    const service = await findService(tx, caller.project.id, serviceId);
    if (!service || service.status === 'deleted') throw noService();
    const statuses: readonly Status[] = revealable;
    if (!statuses.includes(service.status)) throw invalidState(service, `The password cannot be shown while the service is ${service.status}.`);
    const found = await findCredentials(tx, serviceId);
    if (!found) throw noService();
    appendAudit(tx, {
      orgId: caller.org.id, projectId: caller.project.id, cause: { ...cause, action: 'revealPostgresCredentials' }, outcome: 'done',
      target: { type: 'postgresService', id: serviceId }, changes: [{ field: 'version', from: null, to: found.shown.version }],
    });
    return { service, found };
  });
}

async function show(deps: PostgresDeps, service: ServiceRow, { shown, previous }: Credentials, password: string | null): Promise<Shown> {
  const address = deps.publicGateway.addressOf(service);
  const overlapping = previous?.validUntil && previous.validUntil > deps.clock.now() ? previous : null;
  return viewCredentials({ service, credential: shown, previous: overlapping, address, trust: await deps.publicGateway.trust(service), password });
}

import { AppError } from '../../src/core/errors';
import type { Login } from '../../src/postgres/ports';
import { namesOf, newPassword, planLimits, scramVerifier } from '../../src/postgres/rules';
import { accessModeOf } from '../../src/postgres/state';
import { findCredentials, secretAad, storeSecret, verifierAad, type CredentialRow, type Credentials } from '../../src/postgres/store/credentials';
import { enterPhase, openAccess, type Run } from '../../src/postgres/store/runs';
import type { ServiceRow } from '../../src/postgres/store/services';
import { onBackend, ownedBy, placed, refOf, requireRun, retryable, undoRefOf, type PostgresActivityDeps } from './work';

const proofLastsMs = 86_400_000;

/** Whether what the pool proved of an instance still counts. */
export function isFresh(provenAt: string | null): boolean {
  return provenAt !== null && Date.now() - Date.parse(provenAt) <= proofLastsMs;
}
const proveMs = 10_000;

/** Who gets in, and the proof of it: of a new service, of a rotation, of a resumption. */
export function createAccessActivities(deps: PostgresActivityDeps) {
  return {
    ensureAccess: (run: Run) => ensureAccess(deps, run),
    verifyAccess: (run: Run) => verifyAccess(deps, run),
    /** Undo of a rotation: the former passwords are good, and they alone. */
    revertAccess: (run: Run) => revertAccess(deps, run),
  };
}

/** The password is sealed and stored, and only then its verifier sent; a repeat sends the stored one. */
export async function ensureAccess(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(ownedBy(await enterPhase(deps.db.prisma, run, 'configuring')));
  const found = await ensureSecret(deps, run);
  await onBackend(deps, run, () => deps.postgresBackend.ensureAccess({ ...refOf(service), ...accessOf(deps, service, found) }));
  if (service.status === 'provisioning') ownedBy(await openAccess(deps.db.prisma, run));
}

async function revertAccess(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(await requireRun(deps, run, ['updating']));
  const { pending, ...former } = await requireCredentials(deps, run);
  await onBackend(deps, run, () => deps.postgresBackend.ensureAccess({
    ...undoRefOf(service), ...accessOf(deps, service, { ...former, pending: null }), endSessionsOf: pending ? [pending.login] : [],
  }));
}

/**
 * The logins that are good with these credentials, and whose sessions end. A rotation at once keeps the login and ends an overlap before it; one with
 * an overlap gives the other login the new password and the former one a last second.
 */
export function accessOf(deps: Pick<PostgresActivityDeps, 'secrets'>, service: ServiceRow, { shown, pending, previous }: Credentials): { logins: Login[]; endSessionsOf: string[] } {
  const login = ({ login: name, verifierSealed }: CredentialRow, validUntil: Date | null): Login => ({
    name, verifier: deps.secrets.open(verifierSealed ?? '', verifierAad(service.id, name)), connectionLimit: planLimits[service.plan].connections,
    validUntil: validUntil?.toISOString() ?? null, enabled: true,
  });
  if (!pending) {
    const overlapping = previous?.validUntil && previous.validUntil > new Date() ? [login(previous, previous.validUntil)] : [];
    return { logins: [login(shown, null), ...overlapping], endSessionsOf: [] };
  }
  if (pending.login === shown.login) {
    return { logins: [login(pending, null)], endSessionsOf: pending.endSessions ? [shown.login, ...previous ? [previous.login] : []] : [] };
  }
  return {
    logins: [login(pending, null), login(shown, pending.overlapUntil)],
    endSessionsOf: [...previous ? [previous.login] : [], ...pending.endSessions ? [shown.login] : []],
  };
}

/** The password is made, sealed and stored; a repeat finds the stored one. Nobody else knows it yet. */
export async function ensureSecret(deps: PostgresActivityDeps, run: Run): Promise<Credentials> {
  const found = await requireCredentials(deps, run);
  const { version, login, secretSealed: known } = found.pending ?? found.shown;
  if (known !== null) return found;
  const password = newPassword();
  const secretSealed = deps.secrets.seal(password, secretAad({ serviceId: run.serviceId, login, version }));
  const verifierSealed = deps.secrets.seal(scramVerifier(password), verifierAad(run.serviceId, login));
  const stored = await storeSecret(deps.db.prisma, run, { version, secretSealed, verifierSealed });
  if (stored) return stored.state === 'pending' ? { ...found, pending: stored } : { ...found, shown: stored, pending: null };
  await requireRun(deps, run, ['provisioning', 'updating']);
  return requireCredentials(deps, run);
}

/** A first password is in force as soon as it is stored: then it is no longer pending. */
async function requireCredentials(deps: PostgresActivityDeps, run: Run): Promise<Credentials> {
  const found = await findCredentials(deps.db.prisma, run.serviceId);
  if (!found || found.shown.state === 'destroyed') throw new AppError('backend_error', 'The service has no credential to give.');
  return found;
}

/**
 * The customer's own login works at the public address with TLS. An instance whose login the pool has proven within a day
 * is asked whether it has the verifier and is open. Errors: `verification_failed`, tried again.
 */
export async function verifyAccess(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(ownedBy(await enterPhase(deps.db.prisma, run, 'verifying')));
  const credential = (await findCredentials(deps.db.prisma, run.serviceId))?.shown;
  const { host, port } = deps.publicGateway.addressOf(service);
  if (!credential?.secretSealed || host === null || port === null) throw new AppError('verification_failed', 'There is nothing to log in with.');
  if (await isProven(deps, service, credential)) return;
  const { sslmode, caCertificate } = await deps.publicGateway.trust(service);
  const password = deps.secrets.open(credential.secretSealed, secretAad(credential));
  const { database } = namesOf(service.id, service.isolation);
  try {
    await deps.postgresCustomer.prove({ host, port, database, user: credential.login, password, sslmode, caCertificate, timeoutMs: proveMs });
  } catch (error) {
    await requireRun(deps, run, ['provisioning', 'updating']);
    throw retryable(error);
  }
}

/**
 * What a full proof would show again, read back from the server itself; whatever is in doubt is proven in full. A service that comes back with a
 * password its customer has changed, or too full to write, cannot be proven by writing as the customer.
 */
async function isProven(deps: PostgresActivityDeps, service: ServiceRow & { hostId: string }, { login, verifierSealed }: CredentialRow): Promise<boolean> {
  const seen = await deps.postgresBackend.observe(refOf(service)).catch(() => null);
  if (!seen || verifierSealed === null || seen.compute !== 'running' || seen.mode !== accessModeOf(service)) return false;
  const held = seen.verifiers[login];
  const ours = held === deps.secrets.open(verifierSealed, verifierAad(service.id, login));
  if (service.status === 'updating' && (seen.mode !== 'full' || (held !== undefined && !ours))) return true;
  return ours && seen.mode === 'full' && isFresh(seen.provenAt);
}

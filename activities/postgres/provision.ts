import { AppError } from '../../src/core/errors';
import { inTransaction } from '../../src/db/transaction';
import { namesOf, newPassword, planLimits, scramVerifier } from '../../src/postgres/rules';
import { markAvailable, markProvisionFailed, type ProvisionFailure } from '../../src/postgres/service';
import { findCredentials, secretAad, storeSecret, type CredentialRow } from '../../src/postgres/store/credentials';
import { releaseHost, reserveHost } from '../../src/postgres/store/hosts';
import { enterPhase, lockRun, openAccess, setInstanceRef, setInstanceRunning, type Run } from '../../src/postgres/store/runs';
import type { ServiceRow } from '../../src/postgres/store/services';
import { isPlaced, onBackend, ownedBy, placed, refOf, requireRun, retryable, verifierAad, type PostgresActivityDeps } from './work';

/** Longest a local provisioning waits for an instance; the ordinary steps go on from what it left. */
const fromPoolMs = 2_500;
const proofLastsMs = 86_400_000;
const proveMs = 10_000;

/** What provisioning does, step by step (contract postgres.md §5.3). Every one is safe twice and gives way to a newer intent. */
export function createProvisionActivities(deps: PostgresActivityDeps) {
  return {
    provisionFromPool: (run: Run) => provisionFromPool(deps, run),
    ensurePlacement: (run: Run) => ensurePlacement(deps, run),
    ensureInstance: (run: Run) => ensureInstance(deps, run),
    ensureAccess: (run: Run) => ensureAccess(deps, run),
    verifyAccess: (run: Run) => verifyAccess(deps, run),
    markAvailable: (run: Run) => markAvailable(deps, run),
    /** Undo of placing: nothing is reserved. */
    releasePlacement: (run: Run) => releasePlacement(deps, run),
    /** Settles the service and its operation as failed, or as cancelled by an operator. */
    markProvisionFailed: ({ failure, ...run }: Run & { failure: ProvisionFailure }) => markProvisionFailed(deps, run, failure),
  };
}

/** All five steps in a row when an instance is ready; otherwise, or on any error, `cold`. */
async function provisionFromPool(deps: PostgresActivityDeps, run: Run): Promise<'available' | 'cold'> {
  try {
    await ensurePlacement(deps, run);
    if (!await withinMs(fromPoolMs, ensureInstance(deps, run))) return 'cold';
    await ensureAccess(deps, run);
    await verifyAccess(deps, run);
    await markAvailable(deps, run);
    return 'available';
  } catch (error) {
    deps.log.info({ err: error, serviceId: run.serviceId }, 'provisioning goes on step by step');
    return 'cold';
  }
}

/** Room is reserved on a host, and the host knows. Errors: `no_capacity` when no host of the region has room. */
async function ensurePlacement(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const full: string[] = [];
  for (;;) {
    const service = await reserve(deps, run, full);
    try {
      const { instanceRef } = await onBackend(deps, run, () => deps.postgresBackend.place(refOf(service)));
      ownedBy(await setInstanceRef(deps.db.prisma, run, instanceRef));
      return;
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'no_capacity') throw error;
      await releasePlacement(deps, run);
      full.push(service.hostId);
    }
  }
}

/** The run has begun and its service has a host, with the row locked so that a DELETE comes before or after, never between. */
function reserve(deps: PostgresActivityDeps, run: Run, except: readonly string[]): Promise<ServiceRow & { hostId: string }> {
  return inTransaction(deps.db, async (tx) => {
    const service = ownedBy(await enterPhase(tx, run, 'placing', 'together'));
    if (isPlaced(service)) return service;
    const { region, plan } = service;
    const wish = { serviceId: run.serviceId, region, backend: deps.postgresBackend.name, bytes: planLimits[plan].storageBytes, except };
    const hostId = await reserveHost(tx, wish);
    if (hostId === null) throw new AppError('no_capacity', 'No host of the region has room.');
    return { ...service, hostId };
  });
}

async function releasePlacement(deps: PostgresActivityDeps, run: Run): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    ownedBy(await lockRun(tx, run, ['provisioning', 'failed']));
    await releaseHost(tx, run.serviceId);
  });
}

/** An instance bound to this service runs. */
async function ensureInstance(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(ownedBy(await enterPhase(deps.db.prisma, run, 'initializing')));
  const { systemId } = await onBackend(deps, run, () => deps.postgresBackend.ensureInstance(refOf(service)));
  ownedBy(await setInstanceRunning(deps.db.prisma, run, systemId));
}

/** The password is sealed and stored, and only then its verifier sent; a repeat sends the stored one. */
async function ensureAccess(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(ownedBy(await enterPhase(deps.db.prisma, run, 'configuring')));
  const { login, verifierSealed } = await ensureSecret(deps, run);
  const verifier = deps.secrets.open(verifierSealed ?? '', verifierAad(run.serviceId, login));
  const connectionLimit = planLimits[service.plan].connections;
  await onBackend(deps, run, () => deps.postgresBackend.ensureAccess({
    ...refOf(service), endSessionsOf: [], logins: [{ name: login, verifier, connectionLimit, validUntil: null, enabled: true }],
  }));
  ownedBy(await openAccess(deps.db.prisma, run));
}

async function ensureSecret(deps: PostgresActivityDeps, run: Run): Promise<CredentialRow> {
  const { version, login, state, ...found } = await requireCredential(deps, run);
  if (state === 'current') return { version, login, state, ...found };
  const password = newPassword();
  const secretSealed = deps.secrets.seal(password, secretAad({ serviceId: run.serviceId, login, version }));
  const verifierSealed = deps.secrets.seal(scramVerifier(password), verifierAad(run.serviceId, login));
  const stored = await storeSecret(deps.db.prisma, run, { version, secretSealed, verifierSealed });
  if (stored) return stored;
  await requireRun(deps, run, ['provisioning']);
  return requireCredential(deps, run);
}

async function requireCredential(deps: PostgresActivityDeps, run: Run): Promise<CredentialRow> {
  const found = await findCredentials(deps.db.prisma, run.serviceId);
  if (!found || found.latest.state === 'destroyed') throw new AppError('backend_error', 'The service has no credential to give.');
  return found.latest;
}

/**
 * The customer's own login works at the public address with TLS. An instance whose login the pool has proven within a day
 * is asked whether it has the verifier and is open. Errors: `verification_failed`, tried again.
 */
async function verifyAccess(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(ownedBy(await enterPhase(deps.db.prisma, run, 'verifying')));
  const credential = (await findCredentials(deps.db.prisma, run.serviceId))?.latest;
  const { host, port } = deps.publicGateway.addressOf(service);
  if (!credential?.secretSealed || host === null || port === null) throw new AppError('verification_failed', 'There is nothing to log in with.');
  if (await isProven(deps, service, credential)) return;
  const { caCertificate } = await deps.publicGateway.trust();
  const password = deps.secrets.open(credential.secretSealed, secretAad(credential));
  const { database } = namesOf(service.id, service.isolation);
  try {
    await deps.postgresCustomer.prove({ host, port, database, user: credential.login, password, caCertificate, timeoutMs: proveMs });
  } catch (error) {
    await requireRun(deps, run, ['provisioning']);
    throw retryable(error);
  }
}

/** What a full proof would show again, read back from the server itself; whatever is in doubt is proven in full. */
async function isProven(deps: PostgresActivityDeps, service: ServiceRow & { hostId: string }, { login, verifierSealed }: CredentialRow): Promise<boolean> {
  const seen = await deps.postgresBackend.observe(refOf(service)).catch(() => null);
  if (!seen?.provenAt || verifierSealed === null || Date.now() - Date.parse(seen.provenAt) > proofLastsMs) return false;
  return seen.compute === 'running' && seen.mode === 'full' && seen.verifiers[login] === deps.secrets.open(verifierSealed, verifierAad(service.id, login));
}

/** True when it was done in time; what is not goes on in the background and is joined by the next attempt. */
async function withinMs(ms: number, work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  work.catch(() => undefined);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

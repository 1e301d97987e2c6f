import { heartbeat } from '@temporalio/activity';
import { billClosedHours, judgeStorage, metricsOf } from '../../src/postgres/service';
import { accessModeOf, statuses } from '../../src/postgres/state';
import { recordArchived } from '../../src/postgres/store/backups';
import { findCredentials, verifierAad } from '../../src/postgres/store/credentials';
import { countByStatus, findObservation, listObservable, recordSeen } from '../../src/postgres/store/observations';
import type { ServiceRow } from '../../src/postgres/store/services';
import { isPlaced, refOf, type PostgresActivityDeps } from './work';

const pageMax = 100;
const atOnce = 8;

export function createObserveActivities(deps: PostgresActivityDeps) {
  return {
    observeServices: () => observeServices(deps),
  };
}

/** Size, compute and whether the password is still ours are what each server says; one that does not answer keeps what was seen last. */
async function observeServices(deps: PostgresActivityDeps): Promise<{ seen: number; silent: number }> {
  const found = { seen: 0, silent: 0 };
  for (let after: string | null = ''; after !== null;) {
    const page: ServiceRow[] = await listObservable(deps.db.prisma, after, pageMax);
    for (let i = 0; i < page.length; i += atOnce) {
      heartbeat();
      for (const seen of await Promise.all(page.slice(i, i + atOnce).map((service) => observe(deps, service)))) found[seen ? 'seen' : 'silent'] += 1;
    }
    after = page.length < pageMax ? null : page.at(-1)?.id ?? null;
  }
  await billClosedHours(deps);
  await showGauges(deps, found.silent);
  return found;
}

async function observe(deps: PostgresActivityDeps, service: ServiceRow): Promise<boolean> {
  if (!isPlaced(service)) return false;
  try {
    const seen = await deps.postgresBackend.observe(refOf(service));
    const former = await findObservation(deps.db.prisma, service.id);
    const inSync = await isInSync(deps, service, seen.verifiers);
    await recordSeen(deps.db.prisma, service, { compute: seen.compute, usedBytes: seen.usedBytes, inSync, ...metricsOf(seen.metrics, former, new Date()) });
    await recordArchived(deps.db.prisma, service.id, seen.newestArchivedWal);
    if (seen.usedBytes !== null) await keepWithinStorage(deps, service, { mode: seen.mode, usedBytes: seen.usedBytes });
    return true;
  } catch (error) {
    deps.log.info({ err: error, serviceId: service.id }, 'a service could not be observed');
    return false;
  }
}

/** A host that guards its storage has changed the mode before; one that does not is told. What is blocked stays so. */
async function keepWithinStorage(deps: PostgresActivityDeps, service: ServiceRow & { hostId: string }, { mode, usedBytes }: { mode: ServiceMode; usedBytes: number }): Promise<void> {
  const state = await judgeStorage(deps, service, usedBytes, mode === 'blocked' ? service.storageState : mode === 'full' ? 'ok' : mode);
  const allowed = accessModeOf({ accessOpen: service.accessOpen, storageState: state });
  if (service.status !== 'available' || mode === 'blocked' || allowed === 'blocked' || mode === allowed) return;
  await deps.postgresBackend.setAccessMode({ ...refOf(service), mode: allowed, stop: false });
}

type ServiceMode = Awaited<ReturnType<PostgresActivityDeps['postgresBackend']['observe']>>['mode'];

async function showGauges({ db, metrics }: PostgresActivityDeps, silent: number): Promise<void> {
  const counts = new Map((await countByStatus(db.prisma)).map(({ status, count }) => [status, count]));
  for (const status of statuses) if (status !== 'deleted') metrics.postgresServices.set({ status }, counts.get(status) ?? 0);
  metrics.postgresSilent.set(silent);
}

/** Null when the server does not run: it is not waked to be asked. */
async function isInSync(deps: PostgresActivityDeps, { id }: ServiceRow, verifiers: Readonly<Record<string, string>>): Promise<boolean | null> {
  const credential = (await findCredentials(deps.db.prisma, id))?.shown;
  if (!credential?.verifierSealed || Object.keys(verifiers).length === 0) return null;
  return verifiers[credential.login] === deps.secrets.open(credential.verifierSealed, verifierAad(id, credential.login));
}

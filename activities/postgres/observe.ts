import { heartbeat } from '@temporalio/activity';
import { planLimits } from '../../src/postgres/rules';
import { findCredentials, verifierAad } from '../../src/postgres/store/credentials';
import { listObservable, recordSeen } from '../../src/postgres/store/observations';
import type { ServiceRow } from '../../src/postgres/store/services';
import { isPlaced, refOf, type PostgresActivityDeps } from './work';

const pageMax = 100;

export function createObserveActivities(deps: PostgresActivityDeps) {
  return {
    observeServices: () => observeServices(deps),
  };
}

/** Size, compute and whether the password is still ours are what each server says; one that does not answer keeps what was seen last. */
async function observeServices(deps: PostgresActivityDeps): Promise<{ seen: number; silent: number }> {
  const found = { seen: 0, silent: 0 };
  for (let after = ''; ;) {
    const page = await listObservable(deps.db.prisma, after, pageMax);
    for (const service of page) {
      heartbeat();
      found[await observe(deps, service) ? 'seen' : 'silent'] += 1;
    }
    const last = page.at(-1);
    if (!last || page.length < pageMax) return found;
    after = last.id;
  }
}

async function observe(deps: PostgresActivityDeps, service: ServiceRow): Promise<boolean> {
  if (!isPlaced(service)) return false;
  try {
    const { compute, usedBytes, verifiers } = await deps.postgresBackend.observe(refOf(service));
    const inSync = await isInSync(deps, service, verifiers);
    await recordSeen(deps.db.prisma, service, { compute, usedBytes, inSync, limitBytes: planLimits[service.plan].storageBytes });
    return true;
  } catch (error) {
    deps.log.info({ err: error, serviceId: service.id }, 'a service could not be observed');
    return false;
  }
}

/** Null when the server does not run: it is not waked to be asked. */
async function isInSync(deps: PostgresActivityDeps, { id }: ServiceRow, verifiers: Readonly<Record<string, string>>): Promise<boolean | null> {
  const credential = (await findCredentials(deps.db.prisma, id))?.shown;
  if (!credential?.verifierSealed || Object.keys(verifiers).length === 0) return null;
  return verifiers[credential.login] === deps.secrets.open(credential.verifierSealed, verifierAad(id, credential.login));
}

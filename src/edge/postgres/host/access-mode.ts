import { isId } from '../../../core/ids';
import { namesOf, planLimits, storageState, type AccessMode, type Limits, type Names } from '../../../postgres/rules';
import type { Instance } from './instance';
import { closeAccess, ensureDatabase, limitConnections, openAccess, openDatabases } from './roles';
import { restrict, unrestrict } from './restriction';

/**
 * The mode and the plan's connections are in force, or will be before anybody is let in: what is meant is written down first, so a host that dies half-way
 * finishes it. Safe twice.
 */
export async function enforceMode(instance: Instance, mode: AccessMode): Promise<void> {
  await instance.save({ mode, settled: false });
  await settleMode(instance);
}

/** A running server has been told of its mode. A stopped one is told when it starts. */
export async function settleMode(instance: Instance): Promise<void> {
  const { settled, mode } = instance.record;
  const names = namesOfInstance(instance);
  if (settled || !names || instance.pid === null || (mode === 'restricted' && performance.now() < instance.closedUntil)) return;
  const limits = limitsOf(instance);
  if (mode === 'blocked') return close(instance, names);
  await open(instance, names, mode, limits);
  await instance.save({ settled: true });
}

/** A server that cannot be told to close is stopped: it is told before anybody finds it again. */
async function close(instance: Instance, names: Names): Promise<void> {
  try {
    await instance.asSuperuser((client) => closeAccess(client, names));
  } catch {
    return instance.stop();
  }
  await instance.save({ settled: true });
}

async function open(instance: Instance, names: Names, mode: Exclude<AccessMode, 'blocked'>, limits: Limits): Promise<void> {
  await instance.reload(limits);
  await instance.asSuperuser(async (client) => {
    await openDatabases(client);
    await ensureDatabase(client, instance, names);
  });
  if (mode === 'restricted') await restrict(instance, names);
  else await unrestrict(instance, names);
  await instance.asSuperuser(async (client) => {
    await limitConnections(client, names, mode === 'restricted' ? 1 : limits.connections);
    await openAccess(client, names);
  });
}

/** What storage allows now. Measures. */
export async function modeByStorage(instance: Instance, former: AccessMode = instance.record.mode): Promise<Exclude<AccessMode, 'blocked'>> {
  const previous = former === 'read_only' || former === 'restricted' ? former : 'ok';
  const state = storageState(await instance.measure(), limitsOf(instance).storageBytes, previous);
  return state === 'read_only' || state === 'restricted' ? state : 'full';
}

/** Null for an instance that belongs to nobody. */
export function namesOfInstance({ record: { serviceId } }: Instance): Names | null {
  return isId('pg', serviceId) ? namesOf(serviceId) : null;
}

function limitsOf({ id, record: { plan } }: Instance): Limits {
  if (!plan) throw new Error(`Instance ${id} has no plan yet.`);
  return planLimits[plan];
}

import { rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../core/errors';
import { KeyedQueue, Semaphore } from '../../../core/keyed-queue';
import type { HostAnswer, HostCall } from '../../../postgres/schemas/host';
import type { Fences } from './fences';
import type { Instance } from './instance';
import type { InstanceSet } from './instance-set';
import type { Leases } from './leases';
import { enforceMode, modeByStorage, settleMode } from './access-mode';
import { archivedUntil, archiveOf } from './archive';
import { pendingRestart, readMetrics, readVerifiers } from './observe';
import type { Pool } from './pool';
import { ensureAccess } from './roles';
import type { Limits } from '../../../postgres/rules';
import type { Site } from './site';

type Ref = HostCall<'observe'>;
export type Capacity = { bytes: number; reserveBytes: number };

/**
 * What the worker asks of this host, one call per method of the port. Calls for one service run in turn; the fence is
 * raised before the turn comes, so work that is under way for an older intent ends at its next step.
 */
export class ServiceCalls {
  private readonly turns = new KeyedQueue();
  private readonly starts = new Semaphore(8);
  private provisions = 0;
  private lastProvisionAt = -Infinity;

  constructor(
    private readonly site: Site, private readonly set: InstanceSet, private readonly parts: { fences: Fences; leases: Leases; capacity: Capacity },
    private readonly pool: Pick<Pool, 'claim'>,
  ) {}

  /** Somebody waits for an instance, or did a moment ago. */
  get busy(): boolean {
    return this.provisions > 0 || performance.now() - this.lastProvisionAt < 400;
  }

  async place(r: HostCall<'place'>): Promise<HostAnswer<'place'>> {
    return this.provisioning(r, async () => ({ instanceRef: (await this.bound(r)).id }));
  }

  async ensureInstance(r: HostCall<'ensureInstance'>): Promise<HostAnswer<'ensureInstance'>> {
    return this.provisioning(r, async () => {
      const instance = await this.bound(r);
      if (instance.record.systemId === null) await instance.initialise();
      this.requireFence(r);
      await this.wake(instance, r.limits);
      await instance.reload(r.limits);
      await instance.save({ stopped: false, generation: r.generation });
      return { systemId: instance.record.systemId };
    });
  }

  async ensureAccess(r: HostCall<'ensureAccess'>): Promise<HostAnswer<'ensureAccess'>> {
    return this.provisioning(r, async () => {
      const instance = await this.running(r);
      this.requireFence(r);
      await ensureAccess(instance, r.names, r.logins, r.endSessionsOf);
      const { mode } = instance.record;
      if (mode === 'restricted') await enforceMode(instance, mode);
      if (mode === 'blocked') await enforceMode(instance, await modeByStorage(instance, 'full'));
      await instance.save({ generation: r.generation });
      return { provenAt: instance.record.provenAt };
    });
  }

  async setLimits(r: Ref): Promise<HostAnswer<'setLimits'>> {
    return this.inTurn(r, async () => {
      const instance = this.existing(r);
      await instance.save({ plan: r.limits.plan, generation: r.generation, settled: false });
      if (instance.pid === null) return { restarted: false };
      await instance.reload(r.limits);
      const restarted = await instance.asSuperuser(pendingRestart);
      if (restarted) {
        await instance.stop();
        await this.wake(instance, r.limits);
      }
      const { mode } = instance.record;
      await enforceMode(instance, mode === 'blocked' ? mode : await modeByStorage(instance));
      return { restarted };
    });
  }

  async setAccessMode(r: HostCall<'setAccessMode'>): Promise<null> {
    return this.inTurn(r, async () => {
      const instance = this.set.ofService(r.serviceId);
      if (!instance && r.mode === 'blocked') return null;
      const found = instance ?? this.existing(r);
      await found.save({ generation: r.generation, stopped: r.stop || found.record.stopped });
      if (!found.record.settled || found.record.mode !== r.mode) await enforceMode(found, r.mode);
      if (r.stop) await found.stop();
      return null;
    });
  }

  async observe(r: Ref): Promise<HostAnswer<'observe'>> {
    return this.turns.run(r.serviceId, async () => {
      const instance = this.existing(r);
      const { mode, stopped, systemId, provenAt } = instance.record;
      const running = instance.pid !== null;
      const live = running ? await instance.asSuperuser(async (client) => ({ verifiers: await readVerifiers(client, r.names), metrics: await readMetrics(client) })) : null;
      return {
        usedBytes: await this.sizeOf(instance, r.serviceId), compute: running ? 'running' : stopped ? 'stopped' : 'idle', mode,
        verifiers: live?.verifiers ?? {}, metrics: live?.metrics ?? null, newestArchivedWal: await archivedUntil(archiveOf(this.site.backups, r.serviceId).wal), systemId, provenAt,
      };
    });
  }

  async destroy(r: HostCall<'destroy'>): Promise<null> {
    return this.inTurn(r, async () => {
      const instance = this.set.ofService(r.serviceId);
      this.parts.leases.forget(r.serviceId);
      if (instance && r.retain && instance.record.systemId !== null) await this.set.retain(instance, r.serviceId);
      else if (instance) await this.set.discard(instance);
      // Only now: until it stopped, its server wrote to the archive.
      if (!r.retain) await this.dropKept(r.serviceId);
      return null;
    });
  }

  inventory(): HostAnswer<'inventory'> {
    return [
      ...this.set.all().map((instance) => ({ instanceRef: instance.id, serviceId: instance.record.serviceId, retained: false })),
      ...this.set.retained().map((serviceId) => ({ instanceRef: serviceId, serviceId, retained: true })),
    ];
  }

  /** The service's server runs for this holder's connections, waked if need be. Errors: `not_found`, `backend_error`. */
  async acquire(serviceId: string, holder: AbortSignal): Promise<HostAnswer<'acquire'>> {
    this.parts.leases.hold(serviceId, holder);
    return this.turns.run(serviceId, async () => {
      const instance = this.set.ofService(serviceId);
      if (!instance || instance.record.systemId === null || instance.record.mode === 'blocked' || instance.record.stopped) {
        this.parts.leases.release(serviceId, holder);
        throw new AppError('not_found', 'No open instance of this service is here.');
      }
      if (instance.pid === null) instance.measured = null;
      await this.wake(instance);
      return { port: instance.port };
    });
  }

  /** Stops the service's server if `condition` still holds when its turn comes. */
  stopWhen(serviceId: string, condition: (instance: Instance) => Promise<boolean>): Promise<void> {
    return this.turns.run(serviceId, async () => {
      const instance = this.set.ofService(serviceId);
      if (instance && instance.pid !== null && await condition(instance)) await instance.stop();
    });
  }

  /** For work the host does by itself: nothing happens if the service has another instance, or none, when its turn comes. */
  inTurnOf(serviceId: string, instance: Instance, work: () => Promise<void>): Promise<void> {
    return this.turns.run(serviceId, async () => {
      if (this.set.ofService(serviceId) === instance && instance.pid !== null) await work();
    });
  }

  /** It runs, in the mode that is meant for it. */
  private async wake(instance: Instance, limits?: Limits): Promise<void> {
    if (instance.pid === null) await this.starts.run(() => instance.start(limits));
    else await instance.start(limits);
    await settleMode(instance);
  }

  /** The service's instance, taken from the pool or made if there is none. Errors: `no_capacity`. */
  async bound(r: Ref): Promise<Instance> {
    const existing = this.set.ofService(r.serviceId);
    if (existing) return existing;
    await this.requireRoom(r.limits.storageBytes);
    const instance = this.pool.claim(r.limits.plan) ?? await this.set.create(r.limits.plan);
    await this.set.bind(instance, r.serviceId, r.limits.plan, r.generation);
    return instance;
  }

  private existing(r: Ref): Instance {
    const instance = this.set.ofService(r.serviceId);
    if (!instance) throw new AppError('backend_error', 'This host has no instance of the service.');
    return instance;
  }

  private async running(r: Ref): Promise<Instance> {
    const instance = this.existing(r);
    if (instance.record.systemId === null) throw new AppError('backend_error', 'The instance of the service has not been initialised.');
    await this.wake(instance, r.limits);
    return instance;
  }

  /** So much may be promised, and so much be written at once, with the reserve untouched. Errors: `no_capacity`. */
  async requireRoom(bytes: number, atOnceBytes = 0, directory = this.site.directories.data): Promise<void> {
    const { capacity } = this.parts;
    const free = await freeBytes(directory);
    if (free - atOnceBytes < capacity.reserveBytes || this.set.reservedBytes() + bytes > capacity.bytes) throw new AppError('no_capacity', 'This host has no room for another service of this size.');
  }

  /** An instance without sessions does not grow: its size is measured again only after somebody used it. */
  private async sizeOf(instance: Instance, serviceId: string): Promise<number> {
    const { leases } = this.parts;
    const { measured } = instance;
    const rested = measured && !leases.held(serviceId) && leases.restedMs(serviceId) >= performance.now() - measured.at;
    return rested ? measured.bytes : instance.measure();
  }

  /** What was kept for an undelete or a restore is gone. */
  private async dropKept(serviceId: string): Promise<void> {
    await this.set.dropRetained(serviceId);
    await rm(join(this.site.backups, serviceId), { recursive: true, force: true });
  }

  private requireFence(r: Ref): void {
    this.parts.fences.require(r.serviceId, r.generation);
  }

  /** The service's next turn, unless a newer decision comes first. Errors: `stale_generation`. */
  async inTurn<T>(r: Ref, work: () => Promise<T>): Promise<T> {
    this.requireFence(r);
    const raised = this.parts.fences.raise(r.serviceId, r.generation);
    raised.catch(() => undefined); // heard below, unless the work fails first
    const done = await this.turns.run(r.serviceId, async () => {
      this.requireFence(r);
      return work();
    });
    await raised; // on disk before anybody is told: what was not answered is asked again, and wins again
    return done;
  }

  private async provisioning<T>(r: Ref, work: () => Promise<T>): Promise<T> {
    this.provisions += 1;
    try {
      return await this.inTurn(r, work);
    } finally {
      this.provisions -= 1;
      this.lastProvisionAt = performance.now();
    }
  }
}

/** Bytes an unprivileged process may still write where `path` is. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

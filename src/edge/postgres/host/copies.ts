import { AppError } from '../../../core/errors';
import { isId } from '../../../core/ids';
import { KeyedQueue } from '../../../core/keyed-queue';
import { namesOf, planLimits } from '../../../postgres/rules';
import type { HostAnswer, HostCall } from '../../../postgres/schemas/host';
import { dropBaseBackup, takeBaseBackup } from './base-backup';
import type { Fences } from './fences';
import { removeCluster } from './initialise';
import type { Instance } from './instance';
import type { InstanceSet } from './instance-set';
import type { Leases } from './leases';
import { readEverything } from './read-everything';
import { recoverInto, takeOver } from './recovery';
import type { ServiceCalls } from './service-calls';
import type { Site } from './site';

type Parts = { site: Site; set: InstanceSet; leases: Leases; fences: Fences; calls: Pick<ServiceCalls, 'inTurn' | 'bound' | 'acquire' | 'requireRoom'> };

/**
 * Backups and what is made of them (contract postgres.md §6.1, Backup, WAL, Restore, Revive). A backup is taken beside the
 * service's other work, in a queue of its own: a connection must never wait for a copy.
 */
export class Copies {
  private readonly backups = new KeyedQueue();
  private stopping = false;

  constructor(private readonly parts: Parts) {}

  /** Copies under way end at their next step; they are begun anew by whoever asked for them. */
  stop(): void {
    this.stopping = true;
  }

  async snapshot(r: HostCall<'snapshot'>): Promise<HostAnswer<'snapshot'>> {
    const { set, fences, calls, leases, site } = this.parts;
    const { serviceId, backupId } = r;
    fences.require(serviceId, r.generation);
    return this.backups.run(serviceId, async () => {
      const holder = new AbortController();
      try {
        await calls.acquire(serviceId, holder.signal);
        const instance = set.ofService(serviceId);
        if (!instance) throw new AppError('backend_error', 'This host has no instance of the service.');
        await calls.requireRoom(0, await instance.measure(), site.backups);
        const goOn = () => {
          this.requireHost();
          if (set.ofService(serviceId) !== instance || instance.record.mode === 'blocked') throw new AppError('backend_error', 'The service was closed while it was copied.');
        };
        const owner = site.ownerOf(instance.record.slot);
        const { sizeBytes, from, systemId } = await takeBaseBackup(instance, { serviceId, backupId, backups: site.backups, owner }, goOn);
        return { sizeBytes, from, systemId };
      } finally {
        leases.release(serviceId, holder.signal);
        holder.abort();
      }
    });
  }

  /** Absent is success. */
  async dropBackup({ serviceId, backupId }: HostCall<'dropBackup'>): Promise<null> {
    return this.backups.run(serviceId, async () => {
      await dropBaseBackup(this.parts.site.backups, serviceId, backupId);
      return null;
    });
  }

  restore(r: HostCall<'restore'>): Promise<HostAnswer<'restore'>> {
    const { source } = r;
    return this.parts.calls.inTurn(r, () => (source.kind === 'retained' ? this.revive(r) : this.recover(r, source)));
  }

  /** The backup becomes a database again in a place of its own, every row of it is read, and nothing of that is left. Errors: `restore_unavailable`. */
  async drill({ serviceId, backupId }: HostCall<'drill'>): Promise<HostAnswer<'drill'>> {
    const { site, set, calls } = this.parts;
    const limits = planLimits.trial;
    await calls.requireRoom(0, 0);
    const instance = await set.create(limits.plan);
    try {
      const { manifest } = await recoverInto(instance, { backups: site.backups, serviceId, backupId, targetTime: null },
        { limits, owner: site.ownerOf(instance.record.slot), goOn: () => this.requireHost(), room: (bytes) => calls.requireRoom(0, bytes) });
      return { systemId: manifest.systemId, ...await readEverything(instance, () => this.requireHost()) };
    } finally {
      await set.discard(instance);
    }
  }

  private requireHost(): void {
    if (this.stopping) throw new AppError('backend_error', 'The instance host is stopping.');
  }

  private async revive(r: HostCall<'restore'>): Promise<HostAnswer<'restore'>> {
    const { set } = this.parts;
    if (!set.ofService(r.serviceId)) await set.revive(r.serviceId, r.generation);
    return { reachedTime: null };
  }

  private async recover(r: HostCall<'restore'>, source: Extract<HostCall<'restore'>['source'], { kind: 'backup' }>): Promise<HostAnswer<'restore'>> {
    const { site, calls, fences } = this.parts;
    const instance = await calls.bound(r);
    const { record } = instance;
    const restoredFrom = { backupId: source.backupId, targetTime: source.targetTime };
    if (record.systemId !== null && record.restored?.backupId === source.backupId && record.restored.targetTime === source.targetTime) return { reachedTime: record.restored.reachedTime };
    await emptied(instance, r.generation);
    const { manifest, reachedTime } = await recoverInto(instance, { backups: site.backups, ...source }, {
      limits: r.limits, owner: site.ownerOf(instance.record.slot), room: (bytes) => calls.requireRoom(0, bytes),
      goOn: () => {
        this.requireHost();
        fences.require(r.serviceId, r.generation);
      },
    });
    if (!isId('pg', manifest.serviceId)) throw new AppError('restore_unavailable', 'The backup names no service.');
    const former = namesOf(manifest.serviceId);
    await instance.asSuperuser((client) => takeOver(client, former, r.names));
    await instance.stop();
    await instance.save({ systemId: manifest.systemId, restored: { ...restoredFrom, reachedTime }, mode: 'blocked', settled: false, stopped: true });
    return { reachedTime };
  }
}

/**
 * What a pool or a cut attempt has left in a placed instance makes room. An instance of an older run may hold a customer's data: it is not touched.
 */
async function emptied(instance: Instance, generation: number): Promise<void> {
  if (instance.record.generation !== generation) throw new AppError('backend_error', 'The instance of the service is in use.');
  await instance.stop(false);
  await instance.save({ systemId: null, restored: null, provenAt: null });
  await removeCluster(instance.data);
}

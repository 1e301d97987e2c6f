import type { Log } from '../../../core/log';
import { planLimits } from '../../../postgres/rules';
import { enforceMode, modeByStorage, settleMode } from './access-mode';
import type { Growth } from './growth';
import type { Instance } from './instance';
import type { InstanceSet } from './instance-set';
import type { Leases } from './leases';
import { freeBytes, type Capacity, type ServiceCalls } from './service-calls';

/** How long a measurement holds: of an instance in use, of one that is nearly full, of one that only its own background work can change. */
const holdsMs = { used: 5_000, nearlyFull: 1_000, unused: 60_000 } as const;
/** Share of the plan from which an instance is nearly full: a warning (contract postgres.md §4.5). */
const nearlyFullShare = 0.8;
const reminderMs = 600_000;

type Parts = { set: InstanceSet; calls: Pick<ServiceCalls, 'inTurnOf'>; leases: Leases; capacity: Capacity; dataDir: string; log: Log };

/**
 * Keeps storage within its plan (contract postgres.md §4.5, §6.1 Guard). The host does this alone, so a writer is held also
 * while Temporal and the database are down.
 */
export class Guard {
  private warnedAt = -Infinity;

  constructor(private readonly parts: Parts, private readonly growth: Growth) {}

  async sweep(): Promise<void> {
    await this.watchReserve();
    for (const instance of this.parts.set.all()) {
      const { serviceId, mode, settled } = instance.record;
      if (!serviceId || instance.pid === null || (mode === 'blocked' && settled)) continue;
      await this.judge(instance, serviceId).catch((error: unknown) => this.parts.log.warn({ err: error, serviceId }, 'the storage of a Postgres instance could not be judged'));
    }
  }

  private async judge(instance: Instance, serviceId: string): Promise<void> {
    if (!instance.record.settled) return this.parts.calls.inTurnOf(serviceId, instance, () => settleMode(instance));
    if (!await this.isDue(instance, serviceId)) return;
    const former = instance.record.mode;
    const mode = await modeByStorage(instance);
    if (mode === former) return former === 'restricted' ? this.hold(instance, serviceId) : undefined;
    await this.parts.calls.inTurnOf(serviceId, instance, async () => {
      if (instance.record.mode !== former) return;
      this.growth.forget(instance);
      this.parts.log.warn({ serviceId, from: former, to: mode, usedBytes: instance.measured?.bytes }, 'storage changes what a Postgres service may do');
      await enforceMode(instance, mode);
    });
  }

  private async hold(instance: Instance, serviceId: string): Promise<void> {
    if (!await this.growth.isFound(instance)) return;
    await this.parts.calls.inTurnOf(serviceId, instance, async () => {
      if (instance.record.mode === 'restricted') await this.growth.close(instance);
    });
  }

  /**
   * After its last session an instance is measured once more: what that session freed or wrote counts. A session that came past
   * the gateway is noticed by the log it fills.
   */
  private async isDue(instance: Instance, serviceId: string): Promise<boolean> {
    const { measured, record: { plan, mode } } = instance;
    if (!measured || !plan) return true;
    const ageMs = performance.now() - measured.at;
    const nearlyFull = measured.bytes >= nearlyFullShare * planLimits[plan].storageBytes;
    const used = this.parts.leases.held(serviceId) || this.parts.leases.restedMs(serviceId) < ageMs || mode !== 'full' || await instance.walChangedMs() < ageMs;
    return ageMs >= (used ? (nearlyFull ? holdsMs.nearlyFull : holdsMs.used) : holdsMs.unused);
  }

  /** Below the reserve nothing is placed and no pool filled; somebody must make room. */
  private async watchReserve(): Promise<void> {
    const free = await freeBytes(this.parts.dataDir);
    if (free >= this.parts.capacity.reserveBytes) this.warnedAt = -Infinity;
    else if (performance.now() - this.warnedAt >= reminderMs) {
      this.warnedAt = performance.now();
      this.parts.log.error({ alert: 'lowDisk', freeBytes: free, reserveBytes: this.parts.capacity.reserveBytes }, 'the file system of Postgres instances is below its reserve: nothing is placed on this host');
    }
  }
}

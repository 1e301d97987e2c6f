import type { Log } from '../../../core/log';
import { planLimits } from '../../../postgres/rules';
import type { Instance } from './instance';
import type { InstanceSet } from './instance-set';
import type { Leases } from './leases';
import { countSessions } from './observe';
import type { ServiceCalls } from './service-calls';

/**
 * Stops servers nobody has used for their plan's time. The host does this alone, so it works while Temporal and the
 * database are down. `idleMs` answers how long a service may rest; null: for ever.
 */
export class Rest {
  constructor(
    private readonly parts: { set: InstanceSet; calls: Pick<ServiceCalls, 'stopWhen'>; leases: Leases; log: Log },
    private readonly idleMs: (instance: Instance) => number | null = planIdleMs,
  ) {}

  async sweep(): Promise<void> {
    for (const instance of this.parts.set.all()) {
      const { serviceId } = instance.record;
      if (!serviceId || instance.pid === null || !this.mayStop(instance, serviceId)) continue;
      await this.parts.calls.stopWhen(serviceId, (found) => this.isUnused(found, serviceId))
        .catch((error: unknown) => this.parts.log.warn({ err: error, serviceId }, 'an idle Postgres instance could not be stopped'));
    }
  }

  private mayStop(instance: Instance, serviceId: string): boolean {
    const idleMs = this.idleMs(instance);
    return idleMs !== null && !this.parts.leases.held(serviceId) && this.parts.leases.restedMs(serviceId) >= idleMs;
  }

  /** Sessions that came past the gateway count as well, and begin the time anew. */
  private async isUnused(instance: Instance, serviceId: string): Promise<boolean> {
    if (!this.mayStop(instance, serviceId)) return false;
    if (await instance.asSuperuser(countSessions) === 0) return true;
    this.parts.leases.touch(serviceId);
    return false;
  }
}

function planIdleMs({ record: { plan } }: Instance): number | null {
  const minutes = plan ? planLimits[plan].idleStopMinutes : null;
  return minutes === null ? null : minutes * 60_000;
}

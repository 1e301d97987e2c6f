import { randomBytes } from 'node:crypto';
import { AppError } from '../../core/errors';
import type { InventoryItem, Login, Observation, PostgresBackend, Ref } from '../../postgres/ports';
import type { AccessMode, Names, Plan } from '../../postgres/rules';

type Method = 'place' | 'ensureInstance' | 'ensureAccess' | 'setLimits' | 'setAccessMode' | 'observe' | 'snapshot' | 'restore' | 'destroy' | 'dropBackup' | 'inventory';
type Instance = { ref: string; plan: Plan; systemId: string | null; running: boolean; stopped: boolean; mode: AccessMode; logins: Login[] };

export type FakeOptions = { publicAddress: (names: Names) => { host: string; port: number }; capacityBytes?: number };

/** A backend in memory, for tests of what stands in front of one. It keeps the promises of the port and passes its suite. */
export class FakeBackend implements PostgresBackend {
  readonly name = 'embedded';
  readonly can = { idleStop: true, pointInTime: false, createDatabases: true, gateway: true };
  /** Every call, in order. */
  readonly calls: { method: Method; serviceId: string | null; generation: number | null }[] = [];
  private readonly instances = new Map<string, Instance>();
  private readonly retained = new Map<string, number>();
  private readonly fences = new Map<string, number>();
  private readonly reserved = new Map<string, number>();
  private readonly planned: { method: Method; when: 'before' | 'after'; error: Error }[] = [];

  constructor(private readonly options: FakeOptions) {}

  /** The next call of the method fails: before anything was done, or after all of it was. */
  failNext(method: Method, error: Error, when: 'before' | 'after' = 'before'): void {
    this.planned.push({ method, when, error });
  }

  /** Whether a customer with this verifier would get in now. */
  admits(serviceId: string, login: string, verifier: string): boolean {
    const instance = this.instances.get(serviceId);
    return Boolean(instance?.running && instance.mode !== 'blocked' && instance.logins.some((known) => known.name === login && known.enabled && known.verifier === verifier));
  }

  place(r: Ref): Promise<{ instanceRef: string }> {
    return this.call('place', r, () => ({ instanceRef: this.bound(r).ref }));
  }

  ensureInstance(r: Ref): Promise<{ host: string; port: number; systemId: string | null }> {
    return this.call('ensureInstance', r, () => {
      const instance = this.bound(r);
      instance.systemId ??= randomBytes(8).readBigUInt64BE().toString();
      Object.assign(instance, { running: true, stopped: false });
      return { ...this.options.publicAddress(r.names), systemId: instance.systemId };
    });
  }

  ensureAccess(r: Ref & { logins: Login[] }): Promise<void> {
    return this.call('ensureAccess', r, () => {
      const instance = this.existing(r);
      if (!instance.systemId) throw new AppError('backend_error', 'The instance of the service has not been initialised.');
      instance.running = true;
      instance.logins = r.logins;
      if (instance.mode === 'blocked') instance.mode = 'full';
    });
  }

  setLimits(r: Ref): Promise<{ restarted: boolean }> {
    return this.call('setLimits', r, () => {
      const instance = this.existing(r);
      const restarted = instance.running && instance.plan !== r.limits.plan;
      instance.plan = r.limits.plan;
      this.reserved.set(r.serviceId, r.limits.storageBytes);
      return { restarted };
    });
  }

  setAccessMode(r: Ref & { mode: AccessMode; stop: boolean }): Promise<void> {
    return this.call('setAccessMode', r, () => {
      if (r.mode === 'blocked' && !this.instances.has(r.serviceId)) return;
      const instance = this.existing(r);
      instance.mode = r.mode;
      if (r.stop) Object.assign(instance, { running: false, stopped: true });
    });
  }

  observe(r: Ref): Promise<Observation> {
    return this.call('observe', null, () => {
      const { running, stopped, mode, logins, systemId } = this.existing(r);
      const verifiers = running ? Object.fromEntries(logins.filter((login) => login.enabled && mode !== 'blocked').map((login) => [login.name, login.verifier])) : {};
      return { usedBytes: 33_554_432, compute: running ? 'running' : stopped ? 'stopped' : 'idle', mode, verifiers, metrics: null, newestArchivedWal: null, systemId, provenAt: null };
    });
  }

  snapshot(): Promise<never> {
    return this.call('snapshot', null, () => { throw new AppError('backend_error', 'This backend keeps no backups.'); });
  }

  restore(): Promise<never> {
    return this.call('restore', null, () => { throw new AppError('restore_unavailable', 'This backend keeps no backups.'); });
  }

  destroy(r: Ref & { retain: boolean }): Promise<void> {
    return this.call('destroy', r, () => {
      const instance = this.instances.get(r.serviceId);
      const bytes = this.reserved.get(r.serviceId) ?? 0;
      this.instances.delete(r.serviceId);
      this.reserved.delete(r.serviceId);
      if (!r.retain) this.retained.delete(r.serviceId);
      else if (instance?.systemId) this.retained.set(r.serviceId, bytes);
    });
  }

  dropBackup(): Promise<void> {
    return this.call('dropBackup', null, () => undefined);
  }

  inventory(): Promise<InventoryItem[]> {
    return this.call('inventory', null, () => [
      ...[...this.instances].map(([serviceId, { ref }]) => ({ instanceRef: ref, serviceId, retained: false })),
      ...[...this.retained.keys()].map((serviceId) => ({ instanceRef: serviceId, serviceId, retained: true })),
    ]);
  }

  private bound(r: Ref): Instance {
    const existing = this.instances.get(r.serviceId);
    if (existing) return existing;
    const promised = [...this.reserved.values(), ...this.retained.values()].reduce((sum, bytes) => sum + bytes, 0);
    if (promised + r.limits.storageBytes > (this.options.capacityBytes ?? Infinity)) throw new AppError('no_capacity', 'This host has no room for another service of this size.');
    const instance: Instance = { ref: `in_${randomBytes(8).toString('hex')}`, plan: r.limits.plan, systemId: null, running: false, stopped: false, mode: 'full', logins: [] };
    this.instances.set(r.serviceId, instance);
    this.reserved.set(r.serviceId, r.limits.storageBytes);
    return instance;
  }

  private existing(r: Ref): Instance {
    const instance = this.instances.get(r.serviceId);
    if (!instance) throw new AppError('backend_error', 'This host has no instance of the service.');
    return instance;
  }

  /** `fenced`: the call is refused when a higher generation was seen; only calls that change something are. */
  private async call<T>(method: Method, fenced: Ref | null, work: () => T): Promise<T> {
    this.calls.push({ method, serviceId: fenced?.serviceId ?? null, generation: fenced?.generation ?? null });
    await this.failAsPlanned(method, 'before');
    if (fenced) {
      const highest = this.fences.get(fenced.serviceId) ?? 0;
      if (fenced.generation < highest) throw new AppError('stale_generation', 'A newer decision about this service has been made.');
      this.fences.set(fenced.serviceId, fenced.generation);
    }
    const result = work();
    await this.failAsPlanned(method, 'after');
    return result;
  }

  private async failAsPlanned(method: Method, when: 'before' | 'after'): Promise<void> {
    const index = this.planned.findIndex((plan) => plan.method === method && plan.when === when);
    const [plan] = index < 0 ? [] : this.planned.splice(index, 1);
    if (plan) throw plan.error;
  }
}

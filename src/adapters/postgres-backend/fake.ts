import { randomBytes } from 'node:crypto';
import { AppError } from '../../core/errors';
import type { Drill, InventoryItem, Login, Metrics, Observation, PostgresBackend, Ref, Source } from '../../postgres/ports';
import type { AccessMode, Names, Plan } from '../../postgres/rules';

type Method = 'place' | 'ensureInstance' | 'ensureAccess' | 'setLimits' | 'setAccessMode' | 'restore' | 'snapshot' | 'destroy';
export type FakeCall = { method: Method; serviceId: string; generation: number };
type Instance = { ref: string; plan: Plan; systemId: string | null; running: boolean; stopped: boolean; mode: AccessMode; logins: Login[] };

export type FakeOptions = { publicAddress?: (names: Names) => { host: string; port: number }; capacityBytes?: number };

/** A backend in memory, for tests of what stands in front of one. It keeps the promises of the port and passes its suite. */
export class FakeBackend implements PostgresBackend {
  readonly name = 'embedded';
  readonly can = { idleStop: true, pointInTime: true, createDatabases: true, gateway: true };
  /** Every call that is to change something, in order. */
  readonly calls: FakeCall[] = [];
  /** By service id. */
  readonly instances = new Map<string, Instance>();
  /** What an undelete finds, by service id. */
  readonly retained = new Map<string, { bytes: number; plan: Plan; systemId: string }>();
  /** By service and backup id. */
  readonly backups = new Map<string, { sizeBytes: number; from: string; systemId: string; plan: Plan }>();
  readonly fences = new Map<string, number>();
  /** What every instance is said to hold. */
  usedBytes: number | null = 33_554_432;
  /** What every running instance is said to do. */
  metrics: Metrics | null = null;
  /** When a pool is said to have proven its members. */
  provenAt: string | null = null;
  /** Run inside the call, before or after its effect; what they throw is the call's fault. */
  before: (call: FakeCall) => Promise<void> | void = () => undefined;
  after: (call: FakeCall) => Promise<void> | void = () => undefined;
  private readonly reserved = new Map<string, number>();

  constructor(private readonly options: FakeOptions = {}) {}

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
      return { ...this.options.publicAddress?.(r.names) ?? { host: 'localhost', port: 1 }, systemId: instance.systemId };
    });
  }

  ensureAccess(r: Ref & { logins: Login[] }): Promise<{ provenAt: string | null }> {
    return this.call('ensureAccess', r, () => {
      const instance = this.existing(r);
      if (!instance.systemId) throw new AppError('backend_error', 'The instance of the service has not been initialised.');
      instance.running = true;
      instance.logins = r.logins;
      if (instance.mode === 'blocked') instance.mode = 'full';
      return { provenAt: this.provenAt };
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

  async observe(r: Ref): Promise<Observation> {
    const { running, stopped, mode, logins, systemId } = this.existing(r);
    const open = running && mode !== 'blocked' ? logins.filter((login) => login.enabled) : [];
    return {
      usedBytes: this.usedBytes, compute: running ? 'running' : stopped ? 'stopped' : 'idle', mode, verifiers: Object.fromEntries(open.map((login) => [login.name, login.verifier])),
      metrics: running ? this.metrics : null, newestArchivedWal: null, systemId, provenAt: this.provenAt,
    };
  }

  snapshot({ backupId, ...r }: Ref & { backupId: string }): Promise<{ sizeBytes: number; from: string; systemId: string }> {
    return this.call('snapshot', r, () => {
      const { systemId, plan, mode } = this.existing(r);
      if (!systemId || mode === 'blocked') throw new AppError('backend_error', 'The service does not serve.');
      const known = this.backups.get(keyOf(r.serviceId, backupId));
      const taken = known ?? { sizeBytes: this.usedBytes ?? 0, from: new Date().toISOString(), systemId, plan };
      this.backups.set(keyOf(r.serviceId, backupId), taken);
      return { sizeBytes: taken.sizeBytes, from: taken.from, systemId };
    });
  }

  restore(r: Ref & { source: Source }): Promise<{ reachedTime: string | null }> {
    return this.call('restore', r, () => {
      if (r.source.kind === 'retained' && this.instances.has(r.serviceId)) return { reachedTime: null };
      if (r.source.kind === 'backup') return this.refill(r, r.source);
      const kept = this.retained.get(r.serviceId);
      if (!kept) throw new AppError('restore_unavailable', 'There is nothing to restore from.');
      const { bytes, plan, systemId } = kept;
      this.retained.delete(r.serviceId);
      this.reserved.set(r.serviceId, bytes);
      this.instances.set(r.serviceId, { ref: newRef(), plan, systemId, running: false, stopped: true, mode: 'blocked', logins: [] });
      return { reachedTime: null };
    });
  }

  destroy(r: Ref & { retain: boolean }): Promise<void> {
    return this.call('destroy', r, () => {
      const instance = this.instances.get(r.serviceId);
      const bytes = this.reserved.get(r.serviceId) ?? 0;
      this.instances.delete(r.serviceId);
      this.reserved.delete(r.serviceId);
      if (!r.retain) this.retained.delete(r.serviceId);
      else if (instance?.systemId) this.retained.set(r.serviceId, { bytes, plan: instance.plan, systemId: instance.systemId });
    });
  }

  async dropBackup(serviceId: string, backupId: string): Promise<void> {
    this.backups.delete(keyOf(serviceId, backupId));
  }

  async drill(serviceId: string, backupId: string): Promise<Drill> {
    const backup = this.backups.get(keyOf(serviceId, backupId));
    if (!backup) throw new AppError('restore_unavailable', 'The backup is not there.');
    return { systemId: backup.systemId, tables: 1, rows: 1 };
  }

  async inventory(): Promise<InventoryItem[]> {
    return [
      ...[...this.instances].map(([serviceId, { ref }]) => ({ instanceRef: ref, serviceId, retained: false })),
      ...[...this.retained.keys()].map((serviceId) => ({ instanceRef: serviceId, serviceId, retained: true })),
    ];
  }

  private refill(r: Ref, { serviceId, backupId, targetTime }: Extract<Source, { kind: 'backup' }>): { reachedTime: string | null } {
    const backup = this.backups.get(keyOf(serviceId, backupId));
    if (!backup) throw new AppError('restore_unavailable', 'The backup is not there.');
    Object.assign(this.bound(r), { systemId: backup.systemId, running: false, stopped: true, mode: 'blocked', logins: [] });
    return { reachedTime: targetTime };
  }

  private bound(r: Ref): Instance {
    const existing = this.instances.get(r.serviceId);
    if (existing) return existing;
    const promised = [...this.reserved.values(), ...[...this.retained.values()].map(({ bytes }) => bytes)].reduce((sum, bytes) => sum + bytes, 0);
    if (promised + r.limits.storageBytes > (this.options.capacityBytes ?? Infinity)) throw new AppError('no_capacity', 'This host has no room for another service of this size.');
    const instance: Instance = { ref: newRef(), plan: r.limits.plan, systemId: null, running: false, stopped: false, mode: 'full', logins: [] };
    this.instances.set(r.serviceId, instance);
    this.reserved.set(r.serviceId, r.limits.storageBytes);
    return instance;
  }

  private existing(r: Ref): Instance {
    const instance = this.instances.get(r.serviceId);
    if (!instance) throw new AppError('backend_error', 'This host has no instance of the service.');
    return instance;
  }

  private async call<T>(method: Method, { serviceId, generation }: Ref, effect: () => T): Promise<T> {
    const call = { method, serviceId, generation };
    this.calls.push(call);
    await this.before(call);
    if (generation < (this.fences.get(serviceId) ?? 0)) throw new AppError('stale_generation', 'A newer decision about this service has been made.');
    this.fences.set(serviceId, generation);
    const result = effect();
    await this.after(call);
    return result;
  }
}

function keyOf(serviceId: string, backupId: string): string {
  return `${serviceId}/${backupId}`;
}

function newRef(): string {
  return `in_${randomBytes(8).toString('hex')}`;
}

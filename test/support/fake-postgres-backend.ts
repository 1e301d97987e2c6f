import { AppError } from '../../src/core/errors';
import type { CustomerLogin, Login, Observation, PostgresBackend, PostgresCustomer, Ref } from '../../src/postgres/ports';
import type { AccessMode } from '../../src/postgres/rules';

type Instance = { ref: string; serviceId: string; running: boolean; mode: AccessMode; logins: Login[] };
type Method = 'place' | 'ensureInstance' | 'ensureAccess' | 'setAccessMode' | 'destroy';
type Call = { method: Method; serviceId: string; generation: number };

/** Servers that exist in memory: fences, faults and a record of what was asked, as the real host would see it. */
export class FakePostgresBackend implements PostgresBackend {
  readonly name = 'embedded';
  readonly can = { idleStop: true, pointInTime: false, createDatabases: true, gateway: true };
  readonly calls: Call[] = [];
  readonly instances = new Map<string, Instance>();
  readonly retained = new Set<string>();
  readonly fences = new Map<string, number>();
  /** When a pool is said to have proven its members. */
  provenAt: string | null = null;
  /** Runs inside the call, before (`early`) or after its effect; what it throws is the call's fault. */
  before: (call: Call) => Promise<void> | void = () => undefined;
  after: (call: Call) => Promise<void> | void = () => undefined;

  place(r: Ref): Promise<{ instanceRef: string }> {
    return this.run('place', r, () => ({ instanceRef: this.bound(r).ref }));
  }

  ensureInstance(r: Ref): Promise<{ host: string; port: number; systemId: string | null }> {
    return this.run('ensureInstance', r, () => {
      this.bound(r).running = true;
      return { host: 'localhost', port: 1, systemId: `system-${r.serviceId}` };
    });
  }

  async ensureAccess(r: Ref & { logins: Login[] }): Promise<void> {
    await this.run('ensureAccess', r, () => {
      const instance = this.existing(r);
      instance.logins = r.logins;
      instance.mode = 'full';
    });
  }

  async setAccessMode(r: Ref & { mode: AccessMode; stop: boolean }): Promise<void> {
    await this.run('setAccessMode', r, () => {
      const instance = this.instances.get(r.serviceId);
      if (instance) instance.mode = r.mode;
    });
  }

  async destroy(r: Ref & { retain: boolean }): Promise<void> {
    await this.run('destroy', r, () => {
      if (r.retain && this.instances.has(r.serviceId)) this.retained.add(r.serviceId);
      if (!r.retain) this.retained.delete(r.serviceId);
      this.instances.delete(r.serviceId);
    });
  }

  async observe(r: Ref): Promise<Observation> {
    const { mode, running, logins } = this.existing(r);
    const verifiers = Object.fromEntries(logins.map(({ name, verifier }) => [name, verifier]));
    return { usedBytes: 0, compute: running ? 'running' : 'stopped', mode, verifiers, metrics: null, newestArchivedWal: null, systemId: null, provenAt: this.provenAt };
  }

  async setLimits(): Promise<{ restarted: boolean }> {
    return { restarted: false };
  }

  async snapshot(): Promise<never> {
    throw new AppError('backend_error', 'No backups here.');
  }

  async restore(): Promise<never> {
    throw new AppError('restore_unavailable', 'No backups here.');
  }

  async dropBackup(): Promise<void> {}

  async inventory() {
    return [...this.instances.values()].map(({ ref, serviceId }) => ({ instanceRef: ref, serviceId, retained: false }));
  }

  private bound(r: Ref): Instance {
    const instance = this.instances.get(r.serviceId) ?? { ref: `instance-${r.serviceId}`, serviceId: r.serviceId, running: false, mode: 'blocked' as const, logins: [] };
    this.instances.set(r.serviceId, instance);
    return instance;
  }

  private existing(r: Ref): Instance {
    const instance = this.instances.get(r.serviceId);
    if (!instance) throw new AppError('backend_error', 'No such instance.');
    return instance;
  }

  private async run<T>(method: Method, r: Ref, effect: () => T): Promise<T> {
    const call = { method, serviceId: r.serviceId, generation: r.generation };
    this.calls.push(call);
    await this.before(call);
    if (r.generation < (this.fences.get(r.serviceId) ?? 0)) throw new AppError('stale_generation', 'A newer decision has been made.');
    this.fences.set(r.serviceId, r.generation);
    const result = effect();
    await this.after(call);
    return result;
  }
}

/** Lets in who knows a password whose verifier a fake server has; remembers every login. */
export class FakePostgresCustomer implements PostgresCustomer {
  readonly logins: CustomerLogin[] = [];
  before: () => Promise<void> | void = () => undefined;

  async prove(login: CustomerLogin): Promise<void> {
    this.logins.push(login);
    await this.before();
  }
}

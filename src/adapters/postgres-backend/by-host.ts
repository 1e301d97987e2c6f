import type { InventoryItem, PostgresBackend } from '../../postgres/ports';

type Input<K extends keyof PostgresBackend> = PostgresBackend[K] extends (input: infer I) => unknown ? I : never;

export type ByHostOptions = {
  /** Serves new services. */
  chosen: PostgresBackend;
  /** The backend a host's row names. Errors: the host is not known. */
  of: (hostId: string) => Promise<PostgresBackend>;
  /** Keeps all backups there are. */
  keeper: PostgresBackend;
};

/** Several backends side by side: new services go to the chosen one, every other call to that of the service's own host. */
export class BackendByHost implements PostgresBackend {
  readonly name: PostgresBackend['name'];
  readonly can: PostgresBackend['can'];

  constructor(private readonly options: ByHostOptions) {
    this.name = options.chosen.name;
    this.can = options.chosen.can;
  }

  async place(r: Input<'place'>) { return (await this.options.of(r.hostId)).place(r); }
  async ensureInstance(r: Input<'ensureInstance'>) { return (await this.options.of(r.hostId)).ensureInstance(r); }
  async ensureAccess(r: Input<'ensureAccess'>) { return (await this.options.of(r.hostId)).ensureAccess(r); }
  async setLimits(r: Input<'setLimits'>) { return (await this.options.of(r.hostId)).setLimits(r); }
  async setAccessMode(r: Input<'setAccessMode'>) { return (await this.options.of(r.hostId)).setAccessMode(r); }
  async observe(r: Input<'observe'>) { return (await this.options.of(r.hostId)).observe(r); }
  async snapshot(r: Input<'snapshot'>) { return (await this.options.of(r.hostId)).snapshot(r); }
  async restore(r: Input<'restore'>) { return (await this.options.of(r.hostId)).restore(r); }
  async destroy(r: Input<'destroy'>) { return (await this.options.of(r.hostId)).destroy(r); }
  async inventory(hostId: string): Promise<InventoryItem[]> { return (await this.options.of(hostId)).inventory(hostId); }

  // A backup outlives its service's host.
  dropBackup(serviceId: string, backupId: string) { return this.options.keeper.dropBackup(serviceId, backupId); }
  drill(serviceId: string, backupId: string) { return this.options.keeper.drill(serviceId, backupId); }
}

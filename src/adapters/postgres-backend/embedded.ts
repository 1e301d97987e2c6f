import { join } from 'node:path';
import type { z } from 'zod';
import { JsonLineClient } from '../../core/json-lines';
import { hostAnswers } from '../../postgres/schemas/host';
import type { Drill, InventoryItem, Observation, PostgresBackend } from '../../postgres/ports';
import type { Names } from '../../postgres/rules';

type Method<K extends keyof PostgresBackend> = PostgresBackend[K] extends (input: infer Input) => unknown ? Input : never;

/** Longest a call may take; initdb, a start and a stop each have their own bound within. */
const deadlineMs = { place: 5_000, ensureInstance: 60_000, ensureAccess: 15_000, setLimits: 30_000, setAccessMode: 30_000, observe: 5_000, destroy: 60_000, inventory: 5_000, snapshot: 3_600_000, restore: 3_600_000, dropBackup: 60_000, drill: 3_600_000 } as const;

export type EmbeddedOptions = {
  /** Directory of the instance host's sockets. */
  runDir: string;
  /** Where customers reach a service: the Postgres gateway. */
  publicAddress: (names: Names) => { host: string; port: number };
};

/** One PostgreSQL server per service on this machine, through the instance host (contract postgres.md §6.1). */
export class EmbeddedBackend implements PostgresBackend {
  readonly name = 'embedded';
  readonly can = { idleStop: true, pointInTime: true, createDatabases: true, gateway: true };
  private readonly client: JsonLineClient;

  constructor(private readonly options: EmbeddedOptions) {
    this.client = new JsonLineClient(join(options.runDir, 'host.sock'));
  }

  place(r: Method<'place'>): Promise<{ instanceRef: string }> {
    return this.call('place', r, hostAnswers.place);
  }

  async ensureInstance(r: Method<'ensureInstance'>): Promise<{ host: string; port: number; systemId: string | null }> {
    const { systemId } = await this.call('ensureInstance', r, hostAnswers.ensureInstance);
    return { ...this.options.publicAddress(r.names), systemId };
  }

  ensureAccess(r: Method<'ensureAccess'>): Promise<{ provenAt: string | null }> {
    return this.call('ensureAccess', r, hostAnswers.ensureAccess);
  }

  setLimits(r: Method<'setLimits'>): Promise<{ restarted: boolean }> {
    return this.call('setLimits', r, hostAnswers.setLimits);
  }

  async setAccessMode(r: Method<'setAccessMode'>): Promise<void> {
    await this.call('setAccessMode', r, hostAnswers.setAccessMode);
  }

  observe(r: Method<'observe'>): Promise<Observation> {
    return this.call('observe', r, hostAnswers.observe);
  }

  snapshot(r: Method<'snapshot'>): Promise<{ sizeBytes: number; from: string; systemId: string }> {
    return this.call('snapshot', r, hostAnswers.snapshot);
  }

  restore(r: Method<'restore'>): Promise<{ reachedTime: string | null }> {
    return this.call('restore', r, hostAnswers.restore);
  }

  drill(serviceId: string, backupId: string): Promise<Drill> {
    return this.call('drill', { serviceId, backupId }, hostAnswers.drill);
  }

  async destroy(r: Method<'destroy'>): Promise<void> {
    await this.call('destroy', r, hostAnswers.destroy);
  }

  async dropBackup(serviceId: string, backupId: string): Promise<void> {
    await this.call('dropBackup', { serviceId, backupId }, hostAnswers.dropBackup);
  }

  inventory(): Promise<InventoryItem[]> {
    return this.call('inventory', {}, hostAnswers.inventory);
  }

  close(): void {
    this.client.close();
  }

  private call<T>(method: keyof typeof deadlineMs, params: unknown, answer: z.ZodType<T>): Promise<T> {
    return this.client.call(method, params, answer, deadlineMs[method]);
  }
}

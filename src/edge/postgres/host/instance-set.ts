import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { planLimits, type Plan } from '../../../postgres/rules';
import { AppError } from '../../../core/errors';
import { giveTo, removeCluster } from './initialise';
import { Instance } from './instance';
import { readRecord, writeRecord, type InstanceRecord } from './record';
import type { Site } from './site';
import { Slots } from './slots';

const unbound: Omit<InstanceRecord, 'slot'> = { serviceId: null, plan: null, systemId: null, generation: 0, mode: 'full', settled: true, stopped: false, restored: null, provenAt: null };

/** All instances of this host, and what is retained of former ones. The directories are the truth; this is them in memory. */
export class InstanceSet {
  private readonly instances = new Map<string, Instance>();
  private readonly byService = new Map<string, Instance>();
  private readonly retainedPlans = new Map<string, Plan | null>();
  private readonly slots: Slots;

  private constructor(private readonly site: Site) {
    this.slots = new Slots(site);
  }

  /** Finds what former processes left. What nobody owns and was never finished goes; running servers are adopted as they are. */
  static async load(site: Site): Promise<InstanceSet> {
    const set = new InstanceSet(site);
    await rm(site.trash, { recursive: true, force: true });
    await mkdir(site.trash, { mode: 0o700 });
    for (const id of await readdir(site.instances)) await set.orLeft(id, () => set.adopt(id));
    for (const serviceId of await readdir(site.retained)) {
      set.retainedPlans.set(serviceId, null);
      await set.orLeft(serviceId, async () => set.retainedPlans.set(serviceId, (await readRecord(join(site.retained, serviceId)))?.plan ?? null));
    }
    return set;
  }

  all(): Instance[] { return [...this.instances.values()]; }
  ofService(serviceId: string): Instance | undefined { return this.byService.get(serviceId); }
  retained(): string[] { return [...this.retainedPlans.keys()]; }

  /** Bytes promised to services, retained ones included. */
  reservedBytes(): number {
    const plans = [...[...this.byService.values()].map((instance) => instance.record.plan), ...this.retainedPlans.values()];
    return plans.reduce((sum, plan) => sum + (plan ? planLimits[plan].storageBytes : 0), 0);
  }

  /** An empty directory with a slot. Errors: `no_capacity`. */
  async create(plan: Plan | null): Promise<Instance> {
    const slot = await this.slots.take();
    const id = `in_${randomId()}`;
    const directory = join(this.site.instances, id);
    const record = { ...unbound, slot, plan };
    await mkdir(directory);
    await chmod(directory, this.site.ownerOf(slot) ? 0o711 : 0o700);
    await writeRecord(directory, record);
    const instance = new Instance(id, this.site, this.slots, record);
    this.instances.set(id, instance);
    return instance;
  }

  /** The instance is this service's from now on, also for a call that comes before it is on disk. */
  async bind(instance: Instance, serviceId: string, plan: Plan, generation: number): Promise<void> {
    this.byService.set(serviceId, instance);
    try {
      await instance.save({ serviceId, plan, generation });
    } catch (error) {
      this.byService.delete(serviceId);
      throw error;
    }
  }

  /** Nothing of it is left. */
  async discard(instance: Instance): Promise<void> {
    const grave = join(this.site.trash, instance.id);
    await instance.moveAway(grave, false);
    this.forget(instance);
    await rm(grave, { recursive: true, force: true });
  }

  /** Its stopped data stands in `retained/<serviceId>`, and nothing else of it is left. */
  async retain(instance: Instance, serviceId: string): Promise<void> {
    await instance.moveAway(join(this.site.retained, serviceId));
    this.forget(instance);
    this.retainedPlans.set(serviceId, instance.record.plan);
  }

  /** What was retained is an instance again: stopped, closed, in a slot of its own. Errors: `restore_unavailable`, `no_capacity`. */
  async revive(serviceId: string, generation: number): Promise<Instance> {
    const kept = join(this.site.retained, serviceId);
    const former = this.retainedPlans.has(serviceId) ? await readRecord(kept) : null;
    if (!former) throw new AppError('restore_unavailable', 'Nothing of the service is retained.');
    const slot = await this.slots.take();
    const id = `in_${randomId()}`;
    const record = { ...former, slot, serviceId, generation, mode: 'blocked' as const, settled: false, stopped: true };
    try {
      const owner = this.site.ownerOf(slot);
      if (owner) await giveTo(join(kept, 'data'), owner);
      await writeRecord(kept, record);
      await rename(kept, join(this.site.instances, id));
    } catch (error) {
      this.slots.free(slot);
      throw error;
    }
    this.retainedPlans.delete(serviceId);
    const instance = new Instance(id, this.site, this.slots, record);
    this.instances.set(id, instance);
    this.byService.set(serviceId, instance);
    return instance;
  }

  async dropRetained(serviceId: string): Promise<void> {
    if (!this.retainedPlans.has(serviceId)) return;
    const grave = join(this.site.trash, `${serviceId}-${randomId()}`);
    await rename(join(this.site.retained, serviceId), grave);
    this.retainedPlans.delete(serviceId);
    await rm(grave, { recursive: true, force: true });
  }

  private forget(instance: Instance): void {
    this.instances.delete(instance.id);
    const { serviceId } = instance.record;
    if (serviceId) this.byService.delete(serviceId);
  }

  /** What cannot be understood may hold somebody's data: it is left as it is, and the others are served. */
  private async orLeft(name: string, read: () => Promise<unknown>): Promise<void> {
    await read().catch((error: unknown) => this.site.log.error({ err: error, directory: name }, 'an instance directory could not be read and was left alone'));
  }

  private async adopt(id: string): Promise<void> {
    const directory = join(this.site.instances, id);
    const record = await readRecord(directory);
    if (!record || (record.serviceId === null && record.systemId === null)) {
      await removeCluster(join(directory, 'data'));
      await rm(directory, { recursive: true, force: true });
      return;
    }
    this.slots.mark(record.slot);
    const instance = new Instance(id, this.site, this.slots, record);
    this.instances.set(id, instance);
    if (record.serviceId) this.byService.set(record.serviceId, instance);
  }
}

function randomId(): string {
  return randomBytes(8).toString('hex');
}

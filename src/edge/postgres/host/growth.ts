import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../../core/log';
import type { Instance } from './instance';
import { usedBytes } from './observe';
import { closeDatabases } from './roles';

/** What deleting may add to a service's tables by itself: maps of free space, rows that lose a reference. */
const growthMaxBytes = 64 * 1024 * 1024;
const longestMs = 3_600_000;

/**
 * Rights alone do not hold who has prepared for a restriction: a function or a rule writes with its owner's rights, and what PUBLIC was granted everybody
 * has. A restricted service that grows all the same is closed, a minute at first and twice as long every further time, until it is restricted no more.
 */
export class Growth {
  private readonly smallest = new WeakMap<Instance, number>();
  private readonly closings = new WeakMap<Instance, number>();

  constructor(private readonly log: Log, private readonly firstMs = 60_000) {}

  forget(instance: Instance): void {
    this.smallest.delete(instance);
    this.closings.delete(instance);
    instance.closedUntil = 0;
  }

  /** True when the restricted instance has grown and is to be closed now. */
  async isFound(instance: Instance): Promise<boolean> {
    const bytes = await tableBytes(instance);
    const smallest = Math.min(bytes, this.smallest.get(instance) ?? bytes);
    this.smallest.set(instance, smallest);
    return bytes > smallest + growthMaxBytes;
  }

  /** Nobody gets in for a while; then it is restricted anew. */
  async close(instance: Instance): Promise<void> {
    const times = this.closings.get(instance) ?? 0;
    const ms = Math.min(longestMs, this.firstMs * 2 ** times);
    this.closings.set(instance, times + 1);
    this.smallest.delete(instance);
    await instance.save({ settled: false });
    await instance.asSuperuser(closeDatabases);
    instance.closedUntil = performance.now() + ms;
    this.log.warn({ serviceId: instance.record.serviceId, forMs: ms }, 'a restricted Postgres service went on growing and is closed');
  }
}

/** Bytes of all databases, without the log and what sorts write for a moment. */
async function tableBytes(instance: Instance): Promise<number> {
  const base = join(instance.data, 'base');
  const sizes = await Promise.all((await readdir(base)).filter((name) => name !== 'pgsql_tmp').map((name) => usedBytes(join(base, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../core/errors';
import { KeyedQueue } from '../../../core/keyed-queue';
import { replaceFile } from '../../../core/files';

/**
 * The highest generation seen of each service, on disk and kept after the service is gone: an activity that arrives late,
 * from a run that was overtaken, cannot bring anything back (contract postgres.md §5.1).
 */
export class Fences {
  private readonly writes = new KeyedQueue();
  private readonly written: Map<string, number>;

  private constructor(private readonly directory: string, private readonly highest: Map<string, number>) {
    this.written = new Map(highest);
  }

  static async load(directory: string): Promise<Fences> {
    const names = (await readdir(directory)).filter((name) => name.startsWith('pg_') && !name.endsWith('.new'));
    const read = async (name: string): Promise<[string, number]> => [name, Number(await readFile(join(directory, name), 'utf8'))];
    return new Fences(directory, new Map(await Promise.all(names.map(read))));
  }

  /** Nothing lower is accepted from this moment on; the promise ends when that is on disk. Errors: `stale_generation`. */
  async raise(serviceId: string, generation: number): Promise<void> {
    this.require(serviceId, generation);
    this.highest.set(serviceId, generation);
    if (generation === this.written.get(serviceId)) return;
    await this.writes.run(serviceId, async () => {
      const highest = Math.max(generation, this.highest.get(serviceId) ?? 0);
      if (highest === this.written.get(serviceId)) return;
      await replaceFile(join(this.directory, serviceId), `${highest}\n`);
      this.written.set(serviceId, highest);
    });
  }

  /** Long work asks between its steps. Errors: `stale_generation`. */
  require(serviceId: string, generation: number): void {
    if (generation < (this.highest.get(serviceId) ?? 0)) {
      throw new AppError('stale_generation', 'A newer decision about this service has been made.');
    }
  }
}

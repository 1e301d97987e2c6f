import { createServer } from 'node:net';
import { AppError } from '../../../core/errors';
import type { Site } from './site';

/** Which ports, and with them uids, this host has given away. Ports somebody else listens on are skipped. */
export class Slots {
  private readonly taken = new Set<number>();

  constructor(private readonly site: Pick<Site, 'portBase' | 'slots'>) {}

  /** Errors: `no_capacity`. */
  async take(): Promise<number> {
    for (let slot = 0; slot < this.site.slots; slot++) {
      if (this.taken.has(slot)) continue;
      this.taken.add(slot);
      if (await portIsFree(this.site.portBase + slot)) return slot;
      this.taken.delete(slot);
    }
    throw new AppError('no_capacity', 'This host has no port left for another instance.');
  }

  mark(slot: number): void {
    this.taken.add(slot);
  }

  free(slot: number): void {
    this.taken.delete(slot);
  }
}

export function portIsFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

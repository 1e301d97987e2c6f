import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import type { Log } from '../../core/log';
import type { ZoneChangeSet } from '../../dns/ports';
import { recordTypes } from '../../dns/rules/rrset';
import type { LoadedZone, ZoneStore } from './zone-store';
import { wholeZone } from './zone-text';

const everyMs = 60_000;
const format = 'holdfast dns snapshot 1';
const types = z.enum([...recordTypes, 'SOA', 'DS']);
const zoneSchema = z.object({
  zoneId: z.templateLiteral(['zone_', z.string()]).nullable(), domain: z.string(), version: z.int(), fromVersion: z.null(), serial: z.int(), kind: z.literal('full'),
  replace: z.array(z.object({ name: z.string(), type: types, ttl: z.int(), values: z.array(z.string()) })), remove: z.array(z.object({ name: z.string(), type: types })),
});

/**
 * Zones of the last run, one JSON line each (DNS_SNAPSHOT_FILE); null when there is no such file. A file that does not end as
 * it was written to end is not believed in part. Errors: it is no snapshot.
 */
export async function readSnapshot(path: string): Promise<ZoneChangeSet[] | null> {
  const zones: ZoneChangeSet[] = [];
  let [head, end] = ['', ''];
  try {
    for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
      if (head === '') head = line;
      else if (line.startsWith('{')) zones.push(zoneSchema.parse(JSON.parse(line)));
      else end = line;
    }
  } catch (error) {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
  if (head !== format || end !== `end ${zones.length}`) throw new Error(`${path} is no whole snapshot of zones.`);
  return zones;
}

/** Keeps the file as the zones are: written beside it and moved into its place, every 60 s when something has changed, and at the end. */
export class SnapshotWriter {
  private readonly timer: NodeJS.Timeout;
  private written = -1;
  private writing: Promise<void> = Promise.resolve();

  constructor(private readonly path: string, private readonly store: ZoneStore, private readonly log: Log) {
    this.timer = setInterval(() => void this.write(), everyMs);
    this.timer.unref();
  }

  /** Resolves when the file holds what is answered now, or a warning says why not. */
  write(): Promise<void> {
    this.writing = this.writing.then(() => this.store.changes === this.written ? undefined : this.replace())
      .catch((error: unknown) => this.log.warn({ err: error, path: this.path }, 'the snapshot of the zones could not be written'));
    return this.writing;
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.write();
  }

  private async replace(): Promise<void> {
    const { changes } = this.store;
    const beside = `${this.path}.${process.pid}`;
    try {
      await writeZones(beside, [...this.store.all()]);
      await rename(beside, this.path);
      this.written = changes;
    } catch (error) {
      await rm(beside, { force: true });
      throw error;
    }
  }
}

/** One zone per turn of the event loop: answers go on between them. */
async function writeZones(path: string, zones: readonly LoadedZone[]): Promise<void> {
  const file = await open(path, 'w', 0o600);
  try {
    await file.appendFile(`${format}\n`);
    for (const zone of zones) await file.appendFile(`${JSON.stringify(wholeZone(zone))}\n`);
    await file.appendFile(`end ${zones.length}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}

import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Semaphore } from '../../core/keyed-queue';
import type { Log } from '../../core/log';
import type { BatchCounts, BatchDetails, EventBatch } from '../../gateway/store/batches';
import { mergeCounts } from './event-batch';

export const spoolBytesMax = 64 * 1024 * 1024;
/** Counters of a pause are added up in one file until it is this long. */
const openBytesMax = 256 * 1024;
/** A number and who gave it: two processes may give the same one. */
const fileName = /^(\d{16})(?:-[\w.-]+)?\.json$/;
const noCounts: BatchCounts = { requests: 0, eventsLost: 0, firstAt: null, lastAt: null, minutes: [], tops: [] };
const noDetails: BatchDetails = { rows: [], raises: [] };

/** A batch without one of its halves is stored like any other. */
type Content = { instanceId: string; seq: number; counts: BatchCounts | null; details: BatchDetails | null };
type Entry = {
  readonly seq: number; readonly path: string; bytes: number;
  /** Null: on disk. */
  content: Content | null;
  isWritten: boolean; hasDetails: boolean;
  /** It may have been stored: its counters stay as they are, under its number. */
  isTried: boolean;
};
type Options = { directory: string; bytesMax: number; log: Log; onLost: (events: number, fromMs: number, toMs: number) => void };

/**
 * Batches that wait for the database, in their order (contract gateway.md §4.6): in memory for a moment, then one file each.
 * Beyond the bytes allowed the oldest details are dropped, counters never. A disk that refuses leaves them in memory.
 */
export class Spool {
  private entries: Entry[] = [];
  /** What `head` has given last. */
  private given: Entry | undefined;
  private readonly turns = new Semaphore(1);
  private isReady = false;

  constructor(private readonly options: Options) {}

  get waiting(): number {
    return this.entries.length;
  }

  /** The highest number here; 0 when nothing waits. */
  get lastSeq(): number {
    return this.entries.at(-1)?.seq ?? 0;
  }

  get bytes(): number {
    return this.entries.reduce((sum, entry) => sum + entry.bytes, 0);
  }

  /** Takes up what earlier processes left in these directories, oldest first. All of it may have been tried. */
  async load(directories: readonly string[]): Promise<void> {
    for (const directory of directories) {
      for (const name of await readdir(directory).catch(() => [])) {
        const [, seq] = fileName.exec(name) ?? [];
        const path = join(directory, name);
        if (name.endsWith('.json.new')) await rm(path, { force: true }); // its process ended while it was writing
        if (seq === undefined) continue;
        const bytes = (await readFile(path).catch(() => Buffer.alloc(0))).length;
        this.entries.push({ seq: Number(seq), path, bytes, content: null, isWritten: true, hasDetails: true, isTried: true });
      }
    }
    this.entries.sort((a, b) => a.seq - b.seq);
  }

  /** `isPaused`: the database is away, so counters of several batches are added up. */
  push(batch: EventBatch, isPaused: boolean): void {
    const details = batch.details.rows.length + batch.details.raises.length > 0 ? batch.details : null;
    const open = this.entries.findLast((entry) => !entry.isTried && entry.content?.counts && !entry.hasDetails);
    if (!isPaused) return this.add({ ...batch, details });
    if (open?.content?.counts && open.bytes < openBytesMax) this.fill(open, { ...open.content, counts: mergeCounts([open.content.counts, batch.counts]) });
    else this.add({ ...batch, details: null });
    if (details) this.add({ ...batch, seq: batch.seq + 1, counts: null, details });
  }

  /** The oldest batch; null when nothing waits. A file that cannot be read is set aside. */
  head(): Promise<EventBatch | null> {
    return this.turns.run(async () => {
      for (let entry = this.entries[0]; entry; entry = this.entries[0]) {
        entry.isTried = true;
        this.given = entry;
        const content = entry.content ?? await this.read(entry);
        if (content) return { instanceId: content.instanceId, seq: entry.seq, counts: content.counts ?? noCounts, details: content.details ?? noDetails };
        this.entries.shift();
      }
      return null;
    });
  }

  /** What `head` gave is stored. */
  done(): Promise<void> {
    return this.turns.run(() => this.remove(this.given));
  }

  /** The database never takes what `head` gave: its details are given up, then all of it. */
  refuse(): Promise<void> {
    return this.turns.run(async () => {
      const { given } = this;
      if (given?.hasDetails && await this.drop(given)) return;
      this.options.log.error({ seq: given?.seq }, 'a batch of the gateway is refused by the database and given up');
      await this.remove(given);
    });
  }

  /** All that waits is on disk afterwards, within the bytes allowed. */
  persist(): Promise<void> {
    return this.turns.run(async () => {
      let excess = this.bytes - this.options.bytesMax;
      for (const entry of excess > 0 ? [...this.entries] : []) {
        if (excess <= 0 || !entry.hasDetails) continue;
        excess -= entry.bytes;
        if (await this.drop(entry)) excess += entry.bytes;
      }
      for (const entry of this.entries) if (!entry.isWritten) await this.write(entry);
    });
  }

  private add(content: Content): void {
    const path = join(this.options.directory, `${String(content.seq).padStart(16, '0')}-${content.instanceId.replace(/[^\w.-]/g, '_')}.json`);
    const entry: Entry = { seq: content.seq, path, bytes: 0, content: null, isWritten: false, hasDetails: content.details !== null, isTried: false };
    this.fill(entry, content);
    this.entries.push(entry);
  }

  private fill(entry: Entry, content: Content): void {
    Object.assign(entry, { content, bytes: Buffer.byteLength(JSON.stringify(content)), isWritten: false, hasDetails: content.details !== null });
  }

  /** Whether counters are left of it. */
  private async drop(entry: Entry): Promise<boolean> {
    const content = entry.content ?? await this.read(entry);
    const details = content?.details ?? noDetails;
    const events = [...details.rows, ...details.raises].reduce((sum, { count }) => sum + count, 0);
    const atMs = Math.floor(entry.seq / 1_000);
    if (events > 0) this.options.onLost(events, atMs, atMs);
    this.options.log.warn({ seq: entry.seq, events }, 'details of gateway events were given up');
    if (!content?.counts) {
      await this.remove(entry);
      return false;
    }
    this.fill(entry, { ...content, details: null });
    return true;
  }

  private async remove(entry: Entry | undefined): Promise<void> {
    if (entry) await rm(entry.path, { force: true }).catch((error: unknown) => this.options.log.error({ err: error, path: entry.path }, 'a batch of the gateway that is stored cannot be removed'));
    this.entries = this.entries.filter((one) => one !== entry); // afterwards: nothing waits only when nothing is left
  }

  private async read(entry: Entry): Promise<Content | null> {
    try {
      const content: unknown = JSON.parse(await readFile(entry.path, 'utf8'));
      if (!isContent(content)) throw new Error('not a batch');
      return content;
    } catch (error) {
      this.options.log.error({ err: error, path: entry.path }, 'a batch of the gateway cannot be read and is set aside');
      await rename(entry.path, `${entry.path}.unreadable`).catch(() => undefined);
      this.options.onLost(1, Math.floor(entry.seq / 1_000), Math.floor(entry.seq / 1_000));
      return null;
    }
  }

  private async write(entry: Entry): Promise<void> {
    const { content, path } = entry;
    try {
      if (!this.isReady) await mkdir(this.options.directory, { recursive: true, mode: 0o700 });
      this.isReady = true;
      await writeFile(`${path}.new`, JSON.stringify(content), { mode: 0o600 });
      await rename(`${path}.new`, path);
      if (entry.content !== content) return; // filled meanwhile: it is written again
      entry.isWritten = true;
      if (entry.hasDetails) entry.content = null;
    } catch (error) {
      this.isReady = false;
      this.options.log.error({ err: error, path }, 'a batch of the gateway cannot be written to disk and waits in memory');
    }
  }
}

/** Files of ours only: written whole, or not at all. */
function isContent(value: unknown): value is Content {
  return typeof value === 'object' && value !== null && 'instanceId' in value && typeof value.instanceId === 'string' && 'counts' in value && 'details' in value
    && (value.counts === null || hasLists(value.counts, 'minutes', 'tops')) && (value.details === null || hasLists(value.details, 'rows', 'raises'));
}

function hasLists(value: unknown, ...names: readonly string[]): boolean {
  return typeof value === 'object' && value !== null && names.every((name) => Array.isArray(Object.getOwnPropertyDescriptor(value, name)?.value));
}

import { createReadStream, createWriteStream } from 'node:fs';
import { chown, mkdir, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { AppError } from '../../../core/errors';
import { readFileIfAny } from '../../../core/files';
import { planLimits, type Limits, type Plan } from '../../../postgres/rules';
import { ensureArchive } from './archive';
import { closedHbaConf, pgHbaConf, pgIdentConf, postgresqlConf, type Recovery } from './configuration';
import { pastCustomers } from './held-up';
import { giveTo, initialise } from './initialise';
import { usedBytes } from './observe';
import { writeRecord, type InstanceRecord } from './record';
import { endLeftovers, hasLock, isReady, postmasterOf, startServer, stopServer } from './server-process';
import type { Site } from './site';
import { portIsFree, type Slots } from './slots';
import { asSuperuser, connectSuperuser, inSession } from './superuser';

const readyWithinMs = 15_000;
const logMaxBytes = 10 * 1024 * 1024;
const socketPathMax = 107;

/**
 * One PostgreSQL server and its directory. Its methods do one thing at a time for one caller: turns are kept by whoever
 * calls (the service's queue, or the pool while nobody owns the instance).
 */
export class Instance {
  /** The postmaster that has answered us; another pid must prove itself again. */
  private readyPid: number | null = null;
  /** Size of the data directory when it was last measured, and by `performance.now()` when; null once the server was waked since. */
  measured: { bytes: number; at: number } | null = null;
  /** A session as superuser that waits for its one use. */
  private open: pg.Client | null = null;
  /** A restricted server that grew lets nobody in before this `performance.now()`. */
  closedUntil = 0;

  constructor(readonly id: string, private readonly site: Site, private readonly slots: Slots, private current: InstanceRecord) {}

  get record(): Readonly<InstanceRecord> { return this.current; }
  get directory(): string { return join(this.site.instances, this.id); }
  get port(): number { return this.site.portBase + this.current.slot; }
  get data(): string { return join(this.directory, 'data'); }
  get pid(): number | null { return postmasterOf(this.data); }
  get log(): string { return join(this.directory, 'server.log'); }
  get socketDir(): string { return join(this.site.directories.run, String(this.current.slot)); }

  async save(change: Partial<InstanceRecord>): Promise<void> {
    const next = { ...this.current, ...change };
    if (JSON.stringify(next) === JSON.stringify(this.current)) return;
    await writeRecord(this.directory, next);
    this.current = next;
  }

  async measure(): Promise<number> {
    const at = performance.now();
    const bytes = await usedBytes(this.data);
    this.measured = { bytes, at };
    return bytes;
  }

  /** Milliseconds since its write-ahead log began another file. */
  async walChangedMs(): Promise<number> {
    return Date.now() - (await stat(join(this.data, 'pg_wal'))).mtimeMs;
  }

  /** A cluster of its own is in the directory. Safe twice. */
  async initialise(inBackground = false): Promise<void> {
    if (this.current.systemId !== null) return;
    const systemId = await initialise(this.site, this.data, this.site.ownerOf(this.current.slot), inBackground);
    await this.save({ systemId });
  }

  /** The server answers, with the settings of `limits`. Safe twice. Errors: `backend_error` when it does not within 15 s. */
  async start(limits: Limits = planLimits[this.planOrThrow()]): Promise<void> {
    const { pid } = this;
    if (pid !== null && pid === this.readyPid) return;
    if (pid !== null) return this.awaitReady(new Promise(() => undefined));
    if (!(await portIsFree(this.port))) await this.moveToFreeSlot();
    if (hasLock(this.data)) await endLeftovers(this.data);
    await this.configure(limits);
    await this.awaitReady((await this.spawn(limits)).ended);
  }

  /**
   * A copy of another server's data has caught up and is a server of its own, which nobody but holdfast_admin can enter yet.
   * `goOn` is asked while it lasts and throws to end it. Errors: `backend_error` when the server gave up; its log says why.
   */
  async recover(limits: Limits, recovery: Recovery, goOn: () => void): Promise<void> {
    if (!(await portIsFree(this.port))) await this.moveToFreeSlot();
    await this.configure(limits, recovery);
    await this.awaitReady((await this.spawn(limits)).ended, goOn);
  }

  /** No process of it is left; `kept` false when its data goes with it. Safe twice. */
  async stop(kept = true): Promise<void> {
    await stopServer(this.data, kept);
    await rm(this.socketDir, { recursive: true, force: true });
  }

  /** What the server reads at its next start or reload. True when that differs from what it read before. Not synced: every start writes it anew. */
  async configure(limits: Limits, recovery: Recovery | null = null): Promise<boolean> {
    const { mode, serviceId, slot } = this.current;
    const owner = this.site.ownerOf(slot);
    const archiveDir = serviceId && limits.plan !== 'trial' ? await ensureArchive(this.site.backups, serviceId, owner) : null;
    const files: [string, string][] = [
      ['postgresql.conf', postgresqlConf({ port: this.port, socketDir: this.socketDir, limits, mode, archiveDir, recovery })],
      ['pg_hba.conf', recovery ? closedHbaConf : pgHbaConf],
      ['pg_ident.conf', pgIdentConf(this.site.hostUser)],
    ];
    let changed = false;
    for (const [name, text] of files) {
      const path = join(this.data, name);
      if (await readFileIfAny(path) === text) continue;
      await rm(`${path}.new`, { force: true });
      await writeFile(`${path}.new`, text, { mode: 0o600, flag: 'wx' }); // the directory is the server's: no link in it is followed
      if (owner) await chown(`${path}.new`, owner.uid, owner.gid);
      await rename(`${path}.new`, path);
      changed = true;
    }
    return changed;
  }

  /** A running server follows what it may change without a restart. */
  async reload(limits: Limits): Promise<void> {
    const { pid } = this;
    if (await this.configure(limits) && pid !== null) process.kill(pid, 'SIGHUP');
  }

  async asSuperuser<T>(work: (client: pg.Client) => Promise<T>, database?: string): Promise<T> {
    const { open } = this;
    if (database !== undefined || !open) return pastCustomers(this.data, () => asSuperuser(this, work, database));
    this.open = null;
    try {
      return await inSession(open, work);
    } finally {
      void open.end().catch(() => undefined);
    }
  }

  /** The next `asSuperuser` finds a session that is there already, and used to `work`: half of a claim would be waiting for one. */
  async openAhead(work: (client: pg.Client) => Promise<unknown>): Promise<void> {
    const client = await connectSuperuser(this);
    client.once('end', () => {
      if (this.open === client) this.open = null;
    });
    await inSession(client, work);
    this.open = client;
  }

  async closeAhead(): Promise<void> {
    const { open } = this;
    this.open = null;
    await open?.end().catch(() => undefined);
  }

  /** The directory is at `target`, with everything in it; the instance is stopped and its slot free. */
  async moveAway(target: string, kept = true): Promise<void> {
    await this.stop(kept);
    await rename(this.directory, target);
    this.slots.free(this.current.slot);
  }

  /** The server holds its log open, so the end of a full one is copied and it is emptied. */
  async rotateLog(): Promise<void> {
    const { log } = this;
    const size = await stat(log).then((found) => found.size, () => 0);
    if (size <= logMaxBytes) return;
    await pipeline(createReadStream(log, { start: size - logMaxBytes, end: size - 1 }), createWriteStream(`${log}.1`, { mode: 0o600 }));
    await truncate(log);
  }

  private planOrThrow(): Plan {
    if (!this.current.plan) throw new Error(`Instance ${this.id} has no plan yet.`);
    return this.current.plan;
  }

  /** Another installation, or anybody, has taken the port while we were stopped. */
  private async moveToFreeSlot(): Promise<void> {
    const slot = await this.slots.take();
    const former = this.current.slot;
    const owner = this.site.ownerOf(slot);
    if (owner) await giveTo(this.data, owner);
    await this.save({ slot });
    this.slots.free(former);
  }

  private async makeSocketDir(): Promise<void> {
    const longest = join(this.socketDir, `.s.PGSQL.${this.port}.lock`);
    if (Buffer.byteLength(longest) > socketPathMax) throw new Error(`${longest} is longer than ${socketPathMax} bytes: set PG_RUN_DIR to a shorter path.`);
    await rm(this.socketDir, { recursive: true, force: true });
    await mkdir(this.socketDir, { mode: 0o700 });
    const owner = this.site.ownerOf(this.current.slot);
    if (owner) await chown(this.socketDir, owner.uid, owner.gid);
  }

  private async spawn(limits: Limits): Promise<{ ended: Promise<void> }> {
    await this.makeSocketDir();
    const modest = limits.plan === 'trial' || limits.plan === 'starter';
    return { ended: startServer({ binaries: this.site.binaries, data: this.data, log: this.log, owner: this.site.ownerOf(this.current.slot), modest }) };
  }

  private async awaitReady(ended: Promise<void>, goOn?: () => void): Promise<void> {
    let over = false;
    void ended.then(() => { over = true; });
    const until = performance.now() + readyWithinMs;
    while (!isReady(this.data)) {
      goOn?.();
      if (over || (!goOn && performance.now() > until)) throw new AppError('backend_error', 'The database server did not start; server.log of the instance says why.');
      await delay(2);
    }
    this.readyPid = this.pid;
  }
}

import { chown, mkdir, rename, rm, stat, truncate, copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { AppError } from '../../../core/errors';
import { readFileIfAny, replaceFile } from '../../../core/files';
import { planLimits, type Limits, type Plan } from '../../../postgres/rules';
import { pgHbaConf, pgIdentConf, postgresqlConf } from './configuration';
import { giveTo, initialise } from './initialise';
import { usedBytes } from './observe';
import { writeRecord, type InstanceRecord } from './record';
import { endLeftovers, isReady, postmasterOf, startServer, stopServer } from './server-process';
import type { Site } from './site';
import { portIsFree, type Slots } from './slots';
import { asSuperuser } from './superuser';

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
  /** Size of the data directory when it was last measured; null once somebody has used the server since. */
  measuredBytes: number | null = null;

  constructor(readonly id: string, private readonly site: Site, private readonly slots: Slots, private current: InstanceRecord) {}

  get record(): Readonly<InstanceRecord> { return this.current; }
  get directory(): string { return join(this.site.instances, this.id); }
  get port(): number { return this.site.portBase + this.current.slot; }
  get data(): string { return join(this.directory, 'data'); }
  get pid(): number | null { return postmasterOf(this.data); }
  get socketDir(): string { return join(this.site.directories.run, String(this.current.slot)); }

  async save(change: Partial<InstanceRecord>): Promise<void> {
    const next = { ...this.current, ...change };
    if (JSON.stringify(next) === JSON.stringify(this.current)) return;
    await writeRecord(this.directory, next);
    this.current = next;
  }

  async measure(): Promise<number> {
    this.measuredBytes = await usedBytes(this.data);
    return this.measuredBytes;
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
    await endLeftovers(this.data);
    await this.configure(limits);
    await this.makeSocketDir();
    const log = join(this.directory, 'server.log');
    const modest = limits.plan === 'trial' || limits.plan === 'starter';
    await this.awaitReady(startServer({ binaries: this.site.binaries, data: this.data, log, owner: this.site.ownerOf(this.current.slot), modest }));
  }

  /** No process of it is left. Safe twice. */
  async stop(): Promise<void> {
    await stopServer(this.data);
    await rm(this.socketDir, { recursive: true, force: true });
  }

  /** What the server reads at its next start or reload. */
  async configure(limits: Limits, mode = this.current.mode): Promise<void> {
    const files: [string, string][] = [
      ['postgresql.conf', postgresqlConf({ port: this.port, socketDir: this.socketDir, limits, mode })],
      ['pg_hba.conf', pgHbaConf],
      ['pg_ident.conf', pgIdentConf(this.site.hostUser)],
    ];
    for (const [name, text] of files) {
      if (await readFileIfAny(join(this.data, name)) === text) continue;
      await replaceFile(join(this.data, name), text);
      const owner = this.site.ownerOf(this.current.slot);
      if (owner) await chown(join(this.data, name), owner.uid, owner.gid);
    }
  }

  asSuperuser<T>(work: (client: pg.Client) => Promise<T>, database?: string): Promise<T> {
    return asSuperuser(this, work, database);
  }

  /** The directory is at `target`, with everything in it; the instance is stopped and its slot free. */
  async moveAway(target: string): Promise<void> {
    await this.stop();
    await rename(this.directory, target);
    this.slots.free(this.current.slot);
  }

  /** The server holds its log open, so a full one is copied and emptied. */
  async rotateLog(): Promise<void> {
    const log = join(this.directory, 'server.log');
    const size = await stat(log).then((found) => found.size, () => 0);
    if (size <= logMaxBytes) return;
    await copyFile(log, `${log}.1`);
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

  private async awaitReady(ended: Promise<void>): Promise<void> {
    let over = false;
    void ended.then(() => { over = true; });
    const until = performance.now() + readyWithinMs;
    while (!isReady(this.data)) {
      if (over || performance.now() > until) throw new AppError('backend_error', 'The database server did not start; server.log of the instance says why.');
      await delay(2);
    }
    this.readyPid = this.pid;
  }
}

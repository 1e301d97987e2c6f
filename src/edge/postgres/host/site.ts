import { execFile } from 'node:child_process';
import { chmod, lstat, mkdir } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Config } from '../../../config';
import type { Log } from '../../../core/log';
import { ensurePostgresBinaries } from '../../../db/postgres-binaries';
import { blockedAncestor, postgresDirectories, type PostgresDirectories } from '../directories';

export type SiteConfig = Pick<Config, 'HOLDFAST_DATA_DIR' | 'HOLDFAST_INSTALLATION' | 'PG_DATA_DIR' | 'PG_RUN_DIR' | 'PG_BACKUP_DIR' | 'PG_INITDB_USER' | 'PG_PORT_BASE'
  | 'PG_UID_BASE' | 'PG_HOST_SLOTS' | 'PG_CAPACITY_BYTES' | 'PG_RESERVE_BYTES'>;

export type Owner = { uid: number; gid: number };

/** The machine as the instance host uses it: directories, binaries, and who owns what. */
export type Site = {
  directories: PostgresDirectories;
  instances: string; retained: string; fences: string; trash: string; backups: string;
  /** Folder of `postgres` and `initdb`. */
  binaries: string;
  portBase: number; slots: number;
  /** Owner of the instance in a slot; null without root, when all belong to our own user. */
  ownerOf(slot: number): Owner | null;
  /** Who runs initdb, which refuses root and uids without a passwd entry; null without root. */
  initdbOwner: Owner | null;
  /** Our own user's name: the one that peer authentication takes for holdfast_admin. */
  hostUser: string;
  log: Log;
};

/** Directories and binaries are there. Errors: one sentence naming the directory a service uid could not traverse, or the missing user. */
export async function prepareSite(config: SiteConfig, log: Log): Promise<Site> {
  const asRoot = process.getuid?.() === 0;
  const directories = postgresDirectories(config);
  await makeDirectories(directories, asRoot);
  const blocked = asRoot ? blockedAncestor(directories.data) ?? blockedAncestor(directories.run) ?? blockedAncestor(directories.backups) : null;
  if (blocked) throw new Error(`Postgres instances run under users of their own, which may not traverse ${blocked}: set PG_DATA_DIR, PG_RUN_DIR and PG_BACKUP_DIR to directories that all users may enter.`);
  if (!asRoot) log.info('without root all Postgres instances belong to one user of the operating system: only PostgreSQL itself keeps customers apart');
  const within = (name: string) => join(directories.data, name);
  return {
    directories,
    instances: within('instances'), retained: within('retained'), fences: within('fences'), trash: within('trash'), backups: directories.backups,
    binaries: dirname((await ensurePostgresBinaries(within('native'))).postgres),
    portBase: config.PG_PORT_BASE, slots: Math.min(config.PG_HOST_SLOTS, 65_535 - config.PG_PORT_BASE),
    ownerOf: (slot) => (asRoot ? { uid: config.PG_UID_BASE + slot, gid: config.PG_UID_BASE + slot } : null),
    initdbOwner: asRoot ? await initdbOwner(config.PG_INITDB_USER) : null,
    hostUser: userInfo().username,
    log,
  };
}

async function makeDirectories({ data, run, backups }: PostgresDirectories, asRoot: boolean): Promise<void> {
  const open = asRoot ? 0o711 : 0o700;
  await mkdir(data, { recursive: true, mode: asRoot ? 0o755 : 0o700 });
  await mkdir(run, { recursive: true, mode: open });
  await mkdir(backups, { recursive: true, mode: open });
  const found = await lstat(run);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) throw new Error(`${run} is not a directory of ours: set PG_RUN_DIR.`);
  await chmod(run, open);
  await chmod(backups, open);
  for (const [name, mode] of [['native', 0o755], ['instances', open], ['retained', 0o700], ['fences', 0o700], ['trash', 0o700]] as const) {
    await mkdir(join(data, name), { recursive: true });
    await chmod(join(data, name), mode);
  }
}

async function initdbOwner(named: string | undefined): Promise<Owner> {
  const candidates = named ? [named] : ['holdfast', 'postgres', 'nobody'];
  for (const name of candidates) {
    const owner = await lookUp(name);
    if (owner) return owner;
  }
  throw new Error(`initdb refuses to run as root and there is no user ${candidates.join(', ')}: set PG_INITDB_USER to an unprivileged user.`);
}

async function lookUp(name: string): Promise<Owner | null> {
  const id = async (option: string) => Number((await promisify(execFile)('id', [option, name])).stdout);
  try {
    const owner = { uid: await id('-u'), gid: await id('-g') };
    return owner.uid === 0 ? null : owner;
  } catch {
    return null;
  }
}

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import { AppError } from '../../../core/errors';
import { isMissing } from '../../../core/files';
import { archiveOf, dropSegmentsBefore, ensureArchive } from './archive';
import type { Instance } from './instance';
import { readManifest, writeManifest, type Manifest } from './manifest';
import { cleanEnvironment } from './server-process';
import type { Owner } from './site';
import { asSuperuser } from './superuser';
import { copyTree, listTree } from './tree-copy';

/** Emptied or made anew by every start (PostgreSQL documentation, Making a Base Backup Using the Low Level API), and what only this host reads. */
const emptied = ['pg_wal', 'pg_replslot', 'pg_dynshmem', 'pg_notify', 'pg_serial', 'pg_snapshots', 'pg_stat_tmp', 'pg_subtrans'];
const left = ['postmaster.pid', 'postmaster.opts', 'postgresql.conf', 'pg_hba.conf', 'pg_ident.conf', 'recovery.signal', 'backup_label.old'];

function isWanted(path: string): boolean {
  const [top = '', ...inner] = path.split('/');
  const file = inner.at(-1) ?? top;
  return !(emptied.includes(top) && inner.length > 0) && !left.includes(path) && !/^pgsql_tmp|^pg_internal\.init|\.new$/.test(file);
}

export type Snapshot = { serviceId: string; backupId: string; backups: string; owner: Owner | null };

/** The backup is there, whole and on disk; what a cut attempt left is removed first. Safe twice: the second finds it. */
export async function takeBaseBackup(instance: Instance, { serviceId, backupId, backups, owner }: Snapshot, goOn: () => void): Promise<Manifest> {
  const { base } = archiveOf(backups, serviceId);
  await ensureArchive(backups, serviceId, owner);
  const whole = join(base, backupId);
  const found = await readManifest(whole);
  if (found) return found;
  for (const name of await readdir(base)) if (name.endsWith('.half')) await rm(join(base, name), { recursive: true, force: true });
  const half = join(base, `${backupId}.half`);
  try {
    await mkdir(half, { mode: 0o700 });
    const manifest = await asSuperuser(instance, (client) => copyRunning(client, { instance, serviceId, backupId, target: half, goOn }));
    await writeManifest(half, manifest);
    await promisify(execFile)('sync', ['-f', half], { env: cleanEnvironment });
    await rename(half, whole);
    await promisify(execFile)('sync', [base], { env: cleanEnvironment });
    return manifest;
  } catch (error) {
    await rm(half, { recursive: true, force: true });
    throw error;
  }
}

type Copying = { instance: Instance; serviceId: string; backupId: string; target: string; goOn(): void };

async function copyRunning(client: pg.Client, { instance, serviceId, backupId, target, goOn }: Copying): Promise<Manifest> {
  const { plan, systemId } = instance.record;
  if (!plan || !systemId) throw new AppError('backend_error', 'The instance of the service has not been initialised.');
  await client.query(`set statement_timeout = '10min'`);
  await client.query('select pg_backup_start($1, true)', [backupId]);
  const list = await listTree(instance.data, isWanted);
  const files = await copyTree(instance.data, join(target, 'data'), { ...list, directories: ['', ...list.directories] }, goOn);
  // Waits for the archive: what the copy needs to become whole is there as well.
  const { rows: [stopped] } = await client.query<{ labelfile: string; at: Date }>('select labelfile, clock_timestamp() as at from pg_backup_stop(true)');
  const firstSegment = /^START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)/m.exec(stopped?.labelfile ?? '')?.[1];
  if (!stopped || !firstSegment) throw new AppError('backend_error', 'The database server did not end the backup.');
  await writeFile(join(target, 'data/backup_label'), stopped.labelfile, { mode: 0o600 });
  const label = { path: 'backup_label', bytes: Buffer.byteLength(stopped.labelfile), sha256: createHash('sha256').update(stopped.labelfile).digest('hex') };
  const all = [...files, label];
  return {
    backupId, serviceId, systemId, plan, from: stopped.at.toISOString(), firstSegment, sizeBytes: all.reduce((sum, file) => sum + file.bytes, 0),
    directories: list.directories, files: all,
  };
}

/** The backup is gone, half or whole, and the log only it needed. Absent is success. */
export async function dropBaseBackup(backups: string, serviceId: string, backupId: string): Promise<void> {
  const { base, wal } = archiveOf(backups, serviceId);
  for (const name of [backupId, `${backupId}.half`]) {
    const grave = join(base, `${name}.gone`);
    await rm(grave, { recursive: true, force: true });
    await rename(join(base, name), grave).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
    await rm(grave, { recursive: true, force: true });
  }
  const oldest = await oldestSegment(base);
  if (oldest) await dropSegmentsBefore(wal, oldest);
}

/** Null while nothing is sure: without a backup, or with one under way whose beginning is not known here. */
async function oldestSegment(base: string): Promise<string | null> {
  const names = await readdir(base).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  const manifests = await Promise.all(names.filter((name) => !name.includes('.')).map((name) => readManifest(join(base, name))));
  const needed = manifests.flatMap((manifest) => (manifest ? [manifest.firstSegment] : []));
  return needed.length === 0 || needed.length < manifests.length ? null : needed.reduce((a, b) => (a.slice(8) < b.slice(8) ? a : b));
}

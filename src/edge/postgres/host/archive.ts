import { chmod, chown, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing } from '../../../core/files';
import { giveTo } from './initialise';
import type { Owner } from './site';

/** Segments of a mebibyte (initdb's --wal-segsize=1): 4096 of them share the second number of a name (xlog_internal.h, XLogFileName). */
const segmentName = /^[0-9A-F]{24}$/;
const segmentsPerNumber = 4096;

/** What is kept of a service: `wal`, which its server writes to, and `base`, which is ours. */
export function archiveOf(backups: string, serviceId: string): { wal: string; base: string } {
  return { wal: join(backups, serviceId, 'wal'), base: join(backups, serviceId, 'base') };
}

/** The service's server may put its finished WAL there, and no other server may read it. */
export async function ensureArchive(backups: string, serviceId: string, owner: Owner | null): Promise<string> {
  const { wal, base } = archiveOf(backups, serviceId);
  await mkdir(base, { recursive: true, mode: 0o700 });
  const isNew = await mkdir(wal, { recursive: true }) !== undefined;
  if (!owner) return wal;
  const found = await stat(wal);
  if (found.uid !== owner.uid && !isNew) await giveTo(wal, owner);
  if ((found.mode & 0o777) === 0o700) return wal;
  await chmod(join(backups, serviceId), 0o711);
  await chmod(wal, 0o700);
  await chown(wal, owner.uid, owner.gid);
  return wal;
}

/** Names of archived segments, oldest first; of every timeline. */
export async function archivedSegments(wal: string): Promise<string[]> {
  try {
    return (await readdir(wal)).filter((file) => segmentName.test(file)).toSorted((a, b) => numberOf(a) - numberOf(b));
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Every commit until this time is in the archive: when the newest segment in it was last written to. Null: there is none. */
export async function archivedUntil(wal: string): Promise<string | null> {
  const newest = (await archivedSegments(wal)).at(-1);
  return newest === undefined ? null : (await stat(join(wal, newest))).mtime.toISOString();
}

/** Segments no remaining backup starts from or after are gone, and the history files of their time. */
export async function dropSegmentsBefore(wal: string, oldestNeeded: string): Promise<void> {
  for (const file of await readdir(wal)) {
    if (!segmentName.test(file.slice(0, 24)) || file.endsWith('.history') || numberOf(file) >= numberOf(oldestNeeded)) continue;
    await rm(join(wal, file), { force: true });
  }
}

/** Position of a segment, whatever its timeline. */
export function numberOf(segment: string): number {
  return Number.parseInt(segment.slice(8, 16), 16) * segmentsPerNumber + Number.parseInt(segment.slice(16, 24), 16);
}

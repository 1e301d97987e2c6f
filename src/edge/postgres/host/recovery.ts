import { copyFile, mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { AppError } from '../../../core/errors';
import { Semaphore } from '../../../core/keyed-queue';
import type { Limits, Names } from '../../../postgres/rules';
import { archivedSegments, archiveOf, numberOf } from './archive';
import type { Recovery } from './configuration';
import { giveTo, systemIdOf } from './initialise';
import type { Instance } from './instance';
import { readManifest, type Manifest } from './manifest';
import type { Owner } from './site';
import { inOneTransaction } from './superuser';
import { copyTree } from './tree-copy';

const { escapeIdentifier: name, escapeLiteral: text } = pg;
/** A commit's time is read a moment before its record is written: so much later a segment certainly holds nothing earlier. */
const slackMs = 2_000;
const ranOut = 'recovery ended before configured recovery target was reached';

export type Wanted = { backups: string; serviceId: string; backupId: string; targetTime: string | null };
export type Target = {
  limits: Limits; owner: Owner | null; goOn(): void;
  /** Throws when there is not that much space. */
  room(bytes: number): Promise<void>;
};
type Recovered = { manifest: Manifest; reachedTime: string | null };

/**
 * The instance's empty directory holds the backup's data, caught up to the target and promoted; its server runs and lets nobody in.
 * Every file is compared with the manifest as it is copied. `goOn` throws to end it.
 * Errors: `restore_unavailable` when the backup is not there, is damaged or does not reach the time.
 */
export async function recoverInto(instance: Instance, wanted: Wanted, { limits, owner, goOn, room }: Target): Promise<Recovered> {
  const { wal, base } = archiveOf(wanted.backups, wanted.serviceId);
  const directory = join(base, wanted.backupId);
  const manifest = await readManifest(directory);
  if (!manifest) throw unavailable('The backup is not there.');
  await room(manifest.sizeBytes);
  const staged = join(instance.directory, 'staged');
  await Promise.all([copyChecked(directory, instance.data, manifest, goOn), stage(wal, staged, { firstSegment: manifest.firstSegment, until: wanted.targetTime ?? manifest.from }, goOn)]);
  if (await systemIdOf(instance.data) !== manifest.systemId) throw unavailable('The backup is of another server.');
  for (const made of ['archive_status', 'summaries']) await mkdir(join(instance.data, 'pg_wal', made), { recursive: true, mode: 0o700 });
  await writeFile(join(instance.data, 'recovery.signal'), '', { mode: 0o600 });
  if (owner) await Promise.all([giveTo(instance.data, owner), giveTo(staged, owner)]);
  await catchUp(instance, limits, { stagedDir: staged, target: targetOf(wanted, manifest, await lastWrite(wal)) }, goOn);
  await rm(staged, { recursive: true, force: true });
  return { manifest, reachedTime: await instance.asSuperuser(reachedTime) };
}

/** What is archived after its last commit reaches any later time as well: then there is nothing to stop before. */
function targetOf({ targetTime }: Wanted, { from }: Manifest, archivedUntil: Date | null): Recovery['target'] {
  if (targetTime === null || Date.parse(targetTime) <= Date.parse(from)) return 'consistent';
  const target = new Date(targetTime);
  if (!archivedUntil || target.getTime() > archivedUntil.getTime()) throw unavailable('The archive does not reach this time.');
  return target.getTime() === archivedUntil.getTime() ? null : target;
}

/** With no commit after the target there is no record to stop at, and the server says so: then the end of the log is the target. */
async function catchUp(instance: Instance, limits: Limits, recovery: Recovery, goOn: () => void): Promise<void> {
  try {
    await instance.recover(limits, recovery, goOn);
  } catch (error) {
    goOn();
    const log = await readFile(instance.log, 'utf8');
    if (!(recovery.target instanceof Date) || !log.includes(ranOut)) throw unavailable('The backup did not become a database again.', error);
    await instance.stop();
    await instance.recover(limits, { ...recovery, target: null }, goOn).catch((cause: unknown) => {
      goOn();
      throw unavailable('The backup did not become a database again.', cause);
    });
  }
}

async function copyChecked(directory: string, data: string, manifest: Manifest, goOn: () => void): Promise<void> {
  const paths = manifest.files.map((file) => file.path);
  const copied = new Map((await copyTree(join(directory, 'data'), data, { directories: ['', ...manifest.directories], files: paths }, goOn)).map((file) => [file.path, file]));
  const damaged = manifest.files.find(({ path, bytes, sha256 }) => copied.get(path)?.sha256 !== sha256 || copied.get(path)?.bytes !== bytes);
  if (damaged) throw unavailable(`The backup is damaged: ${damaged.path}.`);
}

/** The log from the backup's beginning to a little beyond the target, where the new server finds it; the archive belongs to another user. */
async function stage(wal: string, staged: string, { firstSegment, until }: { firstSegment: string; until: string }, goOn: () => void): Promise<void> {
  await rm(staged, { recursive: true, force: true });
  await mkdir(staged, { mode: 0o700 });
  const later = (await archivedSegments(wal)).filter((segment) => numberOf(segment) >= numberOf(firstSegment) && segment.slice(0, 8) === firstSegment.slice(0, 8));
  const gap = later.find((segment, index) => numberOf(segment) !== numberOf(firstSegment) + index);
  const whole = gap ? later.slice(0, later.indexOf(gap)) : later;
  if (whole.length === 0) throw unavailable('The log the backup begins with is not there.');
  const histories = (await readdir(wal)).filter((file) => file.endsWith('.history'));
  const eight = new Semaphore(8);
  await Promise.all([...histories, ...await reaching(wal, whole, until)].map((file) => eight.run(async () => {
    goOn();
    const { atime, mtime } = await stat(join(wal, file));
    await copyFile(join(wal, file), join(staged, file));
    await utimes(join(staged, file), atime, mtime);
  })));
}

async function reaching(wal: string, segments: readonly string[], until: string): Promise<readonly string[]> {
  const enoughMs = Date.parse(until) + slackMs;
  for (const [index, segment] of segments.entries()) {
    if ((await stat(join(wal, segment))).mtimeMs > enoughMs) return segments.slice(0, index + 1);
  }
  return segments;
}

async function lastWrite(wal: string): Promise<Date | null> {
  const newest = (await archivedSegments(wal)).at(-1);
  return newest === undefined ? null : (await stat(join(wal, newest))).mtime;
}

async function reachedTime(client: pg.Client): Promise<string | null> {
  const { rows: [row] } = await client.query<{ at: Date | null }>('select pg_last_xact_replay_timestamp() as at');
  return row?.at?.toISOString() ?? null;
}

/** The roles are the service's own from now on, and none of its logins has a password. What customers made themselves stays as it was. */
export async function takeOver(client: pg.Client, from: Names, to: Names): Promise<void> {
  const { rows } = await client.query<{ rolname: string }>('select rolname from pg_roles where rolname = any($1::text[])', [[from.owner, ...from.logins, from.restricted]]);
  const found = new Set(rows.map((row) => row.rolname));
  const pairs = [[from.owner, to.owner], [from.restricted, to.restricted], [from.logins[0], to.logins[0]], [from.logins[1], to.logins[1]]] as const;
  const logins: readonly string[] = to.logins;
  await inOneTransaction(client, () => client.query([
    ...pairs.filter(([former]) => found.has(former)).flatMap(([former, next]) => [
      ...(former === next ? [] : [`alter role ${name(former)} rename to ${name(next)}`]),
      ...(logins.includes(next) ? [`alter role ${name(next)} nologin password null`, ...(found.has(from.restricted) ? [] : [`alter role ${name(next)} set role = ${text(to.owner)}`])] : []),
    ]),
    'select 1',
  ].join(';\n')));
}

function unavailable(message: string, cause?: unknown): AppError {
  return new AppError('restore_unavailable', message, {}, { cause });
}


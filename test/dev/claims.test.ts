import { createServer } from 'node:net';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claimFile } from '../../src/dev/claims';
import { endLeftovers, recordProcesses } from '../../src/dev/leftovers';
import { openInstallation } from '../../src/dev/installation';
import { anyFreePort, PortClaims } from '../../src/dev/ports';
import { identifyProcess, isRunning } from '../../src/dev/process-identity';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'holdfast-claims-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

test('of twenty that claim one file at once, one has it', async () => {
  const claims = await Promise.all(Array.from({ length: 20 }, () => claimFile(join(dir, 'file'))));
  expect(claims.filter(({ claimed }) => claimed)).toHaveLength(1);
  expect(await readdir(dir)).toEqual(['file']);
});

test('a claim of a process that is gone, or whose number another has now, is taken over', async () => {
  await writeFile(join(dir, 'gone'), '4194304:1');
  await writeFile(join(dir, 'reused'), `${process.pid}:1`);
  await writeFile(join(dir, 'half'), '12');
  for (const name of ['gone', 'reused', 'half']) expect({ name, ...(await claimFile(join(dir, name))) }).toMatchObject({ name, claimed: true });
});

test('a claim of a living process is refused with its pid', async () => {
  await writeFile(join(dir, 'file'), (await identifyProcess(process.ppid)) ?? '');
  expect(await claimFile(join(dir, 'file'))).toEqual({ claimed: false, ownerPid: process.ppid });
});

test('two installations never get one port, also when both ask before either listens', async () => {
  const wanted = await anyFreePort();
  const [a, b] = [new PortClaims(dir), new PortClaims(dir)];
  const [one, other] = await Promise.all([a.claim(wanted), b.claim(wanted)]);
  expect(new Set([one, other]).size).toBe(2);
  await Promise.all([a.release(), b.release()]);
  expect(await readdir(dir)).toEqual([]);
});

test('a port on which somebody listens, on whichever address, is passed over', async () => {
  const wanted = await anyFreePort();
  const server = createServer();
  await new Promise<void>((done) => server.listen(wanted, '0.0.0.0', done));
  const port = await new PortClaims(dir).claim(wanted);
  await new Promise((done) => server.close(done));
  expect(port).toBeGreaterThan(wanted);
});

test('processes that open one installation at once see the same id and secrets, which nobody else can read', async () => {
  const home = join(dir, '.holdfast');
  const all = await Promise.all(Array.from({ length: 8 }, () => openInstallation(home)));
  expect(new Set(all.map(({ id, secrets }) => JSON.stringify({ id, secrets }))).size).toBe(1);
  expect(all[0]?.id).toMatch(/^[a-z0-9]{8}$/);
  expect(Buffer.from(all[0]?.secrets.masterKey ?? '', 'base64')).toHaveLength(32);
});

test('what an earlier supervisor left is ended; a number that is another process by now is not', async () => {
  const { spawn } = await import('node:child_process');
  const orphan = spawn('sleep', ['300'], { stdio: 'ignore' });
  const stranger = spawn('sleep', ['300'], { stdio: 'ignore' });
  const file = join(dir, 'processes.json');
  await recordProcesses(file, [{ name: 'orphan', pid: orphan.pid ?? 0 }]);
  const entries: unknown = JSON.parse(await readFile(file, 'utf8'));
  const identity = (await identifyProcess(stranger.pid ?? 0)) ?? '';
  await writeFile(file, JSON.stringify([...(Array.isArray(entries) ? entries : []), { name: 'stranger', identity: identity.replace(/:.*/, ':1') }]));
  await endLeftovers(file, () => undefined);
  expect(await isRunning(identity)).toBe(true);
  expect(orphan.signalCode ?? (await new Promise((done) => orphan.once('exit', (_, signal) => done(signal))))).toBe('SIGTERM');
  stranger.kill('SIGKILL');
});

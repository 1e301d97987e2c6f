import { fork } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLeashed, type LeashOptions } from '../../src/dev/leash';
import { identifyProcess, isRunning } from '../../src/dev/process-identity';
import { until } from '../support/until';

/** A server that says it runs, notes the signal it gets and then ends. */
const obedient = `trap 'echo stopped; exit 0' TERM INT; echo running; while :; do sleep 0.05; done`;
const deaf = `trap '' TERM INT; echo running; while :; do sleep 0.05; done`;

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'holdfast-leash-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const options = (program: string): LeashOptions => ({ command: '/bin/sh', args: ['-c', program], stopSignal: 'TERM', logFile: join(dir, 'log') });
const log = () => readFile(join(dir, 'log'), 'utf8');
const running = () => until(async () => (await log()).includes('running'));

test('stop() sends the stop signal and resolves when the server is gone', async () => {
  const server = await startLeashed(options(obedient));
  const identity = await identifyProcess(server.pid);
  await running();
  await server.stop();
  expect(server.running).toBe(false);
  expect(await isRunning(identity ?? '')).toBe(false);
  expect(await log()).toContain('stopped');
});

test('a server that does not listen is killed after the grace', async () => {
  const server = await startLeashed(options(deaf));
  await running();
  await server.stop(50);
  expect(await identifyProcess(server.pid)).toBeUndefined();
});

test('a server that ends by itself is seen, and what belonged to it removed', async () => {
  const home = join(dir, 'home');
  await mkdir(home);
  const server = await startLeashed({ ...options('exit 3'), removeAfterwards: home });
  await server.exited;
  await expect(stat(home)).rejects.toThrow('ENOENT');
});

test('a program that does not exist ends at once', async () => {
  const server = await startLeashed({ ...options(''), command: '/nonexistent' });
  await server.exited;
  expect(await log()).toMatch(/not found/);
});

test('a log beyond 10 MB is put aside when the server starts', async () => {
  await writeFile(join(dir, 'log'), '');
  await truncate(join(dir, 'log'), 11 * 1024 * 1024);
  await (await startLeashed(options('exit 0'))).exited;
  expect((await stat(join(dir, 'log.1'))).size).toBe(11 * 1024 * 1024);
  expect((await stat(join(dir, 'log'))).size).toBe(0);
});

test('the server ends when the process that holds the leash is killed', async () => {
  const holder = fork(join(__dirname, '../support/leash-holder.cjs'), [join(dir, 'log'), obedient]);
  const pid = await new Promise<number>((resolve) => holder.once('message', (message) => resolve(Number(message))));
  const identity = (await identifyProcess(pid)) ?? '';
  await running();
  holder.kill('SIGKILL');
  await until(async () => !(await isRunning(identity)));
  expect(await log()).toContain('stopped');
});

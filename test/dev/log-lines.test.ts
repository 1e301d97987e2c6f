import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compact, logLines } from '../../src/dev/log-lines';

test('a log line is short on the terminal', () => {
  const line = { level: 'warn', time: 't', process: 'api', pid: 1, address: '127.0.0.1:3000', err: { type: 'Error', message: 'refused', stack: 'long' }, msg: 'cannot connect' };
  expect(compact(JSON.stringify(line))).toBe('warn: cannot connect (refused) address=127.0.0.1:3000');
  expect(compact(JSON.stringify({ level: 'info', msg: 'x'.repeat(1_000) }))).toHaveLength(300);
});

test('debug and requests that went well stay in the file; failed ones and what is not JSON are shown', () => {
  expect(compact('{"level":"debug","msg":"detail"}')).toBeNull();
  expect(compact('{"level":"info","requestId":"req_1","msg":"request"}')).toBeNull();
  expect(compact('{"level":"error","requestId":"req_1","msg":"request failed"}')).toBe('error: request failed requestId=req_1');
  expect(compact('Error: listen EADDRINUSE')).toBe('Error: listen EADDRINUSE');
  expect(compact('{broken')).toBe('{broken');
});

test('every line is in a file of its owner, which is put aside when it is long', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-logs-'));
  const shown: string[] = [];
  const write = logLines(join(dir, 'logs'), 'api', (text) => shown.push(text));
  write('{"level":"debug","msg":"hidden"}');
  write('x'.repeat(11 * 1024 * 1024));
  write('after');
  expect(await readFile(join(dir, 'logs/api.log'), 'utf8')).toBe('after\n');
  expect((await readFile(join(dir, 'logs/api.log.1'), 'utf8')).split('\n').map((line) => line.slice(0, 40))).toEqual(['{"level":"debug","msg":"hidden"}', 'x'.repeat(40), '']);
  expect((await stat(join(dir, 'logs/api.log'))).mode & 0o777).toBe(0o600);
  expect(shown.at(-1)).toBe('api                after');
  await rm(dir, { recursive: true });
});

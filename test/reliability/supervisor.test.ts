import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { chmod, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { Clone, type DevFile } from '../support/clone';
import { ask, lines } from '../support/dns-client';
import { root } from '../support/servers';

jest.setTimeout(240_000);

const pidOf = (file: DevFile, name: string) => file.processes.find((process) => process.name === name)?.pid;
/** Never 0: that would be every process of our own group. */
function send(signal: NodeJS.Signals, file: DevFile, name: string): void {
  const pid = pidOf(file, name);
  if (!pid) throw new Error(`${name} does not run.`);
  process.kill(pid, signal);
}
const readyz = (file: DevFile) => fetch(`${file.apiUrl}/readyz`).then((response) => response.ok, () => false);

describe('a running installation', () => {
  let clone: Clone;
  let first: DevFile;

  beforeAll(async () => {
    clone = await Clone.make();
    first = await clone.ready();
  });
  afterAll(() => clone.remove());

  test('has written where everything is for its owner alone', async () => {
    const { mode } = await stat(join(clone.dir, 'dev.json'));
    expect(mode & 0o777).toBe(0o600);
    expect(first.processes.map(({ name }) => name)).toEqual(expect.arrayContaining(['database', 'temporal', 'api', 'worker', 'edge-postgres-host', 'edge-postgres', 'edge-dns', 'registry']));
    expect(first.demo).toMatchObject({ email: 'owner@demo.test', orgSlug: 'demo', projectSlug: 'default' });
    expect(await readyz(first)).toBe(true);
    expect((await fetch(first.temporalUiUrl)).status).toBe(200);
  });

  test('shows no other user its secrets', async () => {
    for (const name of ['secrets', 'logs', 'temporal', 'database']) {
      expect({ name, mode: (await stat(join(clone.dir, name))).mode & 0o077 }).toEqual({ name, mode: 0 });
    }
    expect((await stat(clone.dir)).mode & 0o066).toBe(0);
  });

  const zonesByKey = async ({ apiUrl, demo }: DevFile): Promise<{ domain: string; status: string }[]> => {
    const answer = await fetch(`${apiUrl}/v1/api/dns/zones`, { headers: { authorization: `Bearer ${demo.dnsApiKey}` } });
    return z.object({ zones: z.array(z.object({ domain: z.string(), status: z.string() })) }).parse(await answer.json()).zones;
  };
  const registry = (...args: string[]) => promisify(execFile)(process.execPath, [join(root, 'dist/src/commands/registry.js'), ...args], { env: { ...process.env, HOLDFAST_DATA_DIR: clone.dir } }).then(({ stdout }) => stdout);
  const delegatedAt = async ({ registry: { host, port } }: DevFile, domain: string) => lines((await ask({ host, port }, domain, 'NS')).authorities).map((line) => line.split(' ').at(-1)).toSorted();

  test('hosts demo.test, delegated by its registry and active, and shows it to the demo key', async () => {
    await clone.until(async (file) => (await zonesByKey(file)).some((zone) => zone.domain === 'demo.test' && zone.status === 'active'));
    const delegated = await delegatedAt(first, 'demo.test');
    expect(delegated).toEqual([expect.stringMatching(/-1\.ns\.holdfast\.test$/), expect.stringMatching(/-2\.ns\.holdfast\.test$/)]);
    expect(lines((await ask(first.dns, 'demo.test', 'NS')).answers).map((line) => line.split(' ').at(-1)).toSorted()).toEqual(delegated);
  });

  test('sends with the demo key from demo.test, which is verified', async () => {
    const { apiUrl, demo } = first;
    expect(demo).toMatchObject({ mailDomain: 'demo.test', mailServiceId: expect.stringMatching(/^mls_/), mailApiKey: expect.stringMatching(/^hf_test_/) });
    const answer = await fetch(`${apiUrl}/v1/api/mail/send`, {
      method: 'POST', headers: { authorization: `Bearer ${demo.mailApiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ from: `Demo <hello@${demo.mailDomain}>`, to: ['ann@example.com'], subject: 'First', text: 'Hello' }),
    });
    expect({ status: answer.status, body: await answer.json() }).toMatchObject({ status: 202, body: { ok: true, status: 'queued' } });
  });

  test('plays the registrar: what is delegated and removed is answered at once, and refusals say why', async () => {
    expect(await registry('delegate', 'shop.test', 'ns1.elsewhere.test', 'ns2.elsewhere.test')).toContain('answers so');
    expect(await delegatedAt(first, 'shop.test')).toEqual(['ns1.elsewhere.test', 'ns2.elsewhere.test']);
    await expect(registry('delegate', 'example.com', 'ns1.elsewhere.test')).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('not under .test') });
    expect(await registry('list')).toMatch(/^demo\.test .*\nshop\.test {2}ns1\.elsewhere\.test ns2\.elsewhere\.test$/m);
    expect(await registry('remove', 'shop.test')).toContain('answers so');
    expect((await ask(first.registry, 'shop.test', 'NS')).rcode).toBe('NXDOMAIN');
    await registry('delegate', 'kept.test', 'ns1.elsewhere.test');
  });

  test('refuses a second start and says who runs', async () => {
    const second = clone.again();
    second.start();
    expect(await second.ended()).toBe(1);
    expect(second.output).toContain(`process ${clone.pid}`);
    expect(second.output).toContain(first.apiUrl);
  });

  test.each(['api', 'worker', 'registry', 'edge-dns', 'edge-postgres', 'edge-postgres-host', 'temporal', 'database'])('starts %s again when it is killed', async (name) => {
    const before = await clone.until(readyz);
    send('SIGKILL', before, name);
    await clone.says(`${name} is back.`);
    const after = await clone.until(async (file) => ![undefined, pidOf(before, name)].includes(pidOf(file, name)) && (await readyz(file)));
    expect(after.apiUrl).toBe(first.apiUrl);
  });

  test('ends in order, leaves no process and no dev.json on SIGINT', async () => {
    clone.signal('SIGINT');
    expect(await clone.ended()).toBe(0);
    expect(await clone.processes()).toEqual([]);
    await expect(stat(join(clone.dir, 'dev.json'))).rejects.toThrow('ENOENT');
  });

  test('leaves no process when its supervisor is killed, and starts again with what it had', async () => {
    const before = await clone.ready();
    clone.signal('SIGKILL');
    await clone.ended();
    await clone.gone();
    const after = await clone.ready();
    expect(after.demo).toEqual(before.demo);
    expect(await readyz(after)).toBe(true);
    expect(await zonesByKey(after)).toMatchObject([{ domain: 'demo.test', status: 'active' }]);
    expect(await delegatedAt(after, 'kept.test')).toEqual(['ns1.elsewhere.test']);
  });

  test('starts again at once while the processes of a killed supervisor still end', async () => {
    const before = await clone.until(readyz);
    send('SIGSTOP', before, 'api');
    clone.signal('SIGKILL');
    await clone.ended();
    const after = await clone.ready();
    expect(after.apiUrl).toBe(before.apiUrl);
    expect(pidOf(after, 'api')).not.toBe(pidOf(before, 'api'));
  });
});

describe('a start that meets trouble', () => {
  const clones: Clone[] = [];
  const made = async (env?: Record<string, string>) => {
    const clone = await Clone.make(env);
    clones.push(clone);
    return clone;
  };
  afterEach(async () => {
    for (const clone of clones.splice(0)) await clone.remove();
  });

  test('after a power cut: half-written database, damaged Temporal file, stale pid files', async () => {
    const clone = await made();
    await mkdir(join(clone.dir, 'database.new'), { recursive: true });
    await chmod(clone.dir, userInfo().uid === 0 ? 0o711 : 0o700);
    await mkdir(join(clone.dir, 'database/base'), { recursive: true });
    await mkdir(join(clone.dir, 'temporal'));
    await writeFile(join(clone.dir, 'database/PG_VERSION'), '18\n');
    await writeFile(join(clone.dir, 'temporal/temporal.db'), 'garbage'.repeat(1_000));
    await writeFile(join(clone.dir, 'supervisor.pid'), '1:1');
    await writeFile(join(clone.dir, 'processes.json'), '[{"name":"api","identity":"1:1"}');
    expect(await readyz(await clone.ready())).toBe(true);
    expect(clone.output).toMatch(/database directory was incomplete/);
    expect(clone.output).toMatch(/Temporal's file was damaged/);
  });

  test('with a postmaster.pid that names a living stranger', async () => {
    const clone = await made();
    await clone.ready();
    clone.signal('SIGTERM');
    await clone.ended();
    await writeFile(join(clone.dir, 'database/postmaster.pid'), `${process.pid}\n${join(clone.dir, 'database')}\n`);
    expect(await readyz(await clone.ready())).toBe(true);
  });

  test('two installations that want the same ports start at the same moment and share nothing', async () => {
    const one = await made();
    const other = await made(one.settings);
    const [a, b] = await Promise.all([one.ready(), other.ready()]);
    const places = (file: DevFile) => [file.apiUrl, file.temporalUiUrl, file.postgres.port, file.registry.port, ...file.processes.map(({ pid }) => pid)];
    expect(places(a).filter((place) => places(b).includes(place))).toEqual([]);
    expect([await readyz(a), await readyz(b)]).toEqual([true, true]);
    expect(`${one.output}${other.output}`).toMatch(/Port \d+ is in use: the API listens on \d+/);
  });

  test('a port that another program holds is replaced and said', async () => {
    const taken = createServer();
    const port = await listening(taken);
    const clone = await made({ API_ADDR: `127.0.0.1:${port}` });
    const file = await clone.ready();
    taken.close();
    expect(file.apiUrl).not.toContain(`:${port}`);
    expect(clone.output).toContain(`Port ${port} is in use: the API listens on ${new URL(file.apiUrl).port}.`);
  });

  test('ended in the middle, leaves no process', async () => {
    const clone = await made();
    clone.start();
    await clone.started('database');
    clone.signal('SIGINT');
    await clone.ended();
    expect(await clone.processes()).toEqual([]);
  });

  test('with a bad setting, names every bad key and starts nothing', async () => {
    const clone = await made({ API_ADDR: 'nonsense', PG_POOL_PREPARED: 'many' });
    clone.start();
    expect(await clone.ended()).toBe(1);
    expect(clone.output).toMatch(/API_ADDR[\s\S]*PG_POOL_PREPARED/);
    expect(await clone.processes()).toEqual([]);
    await rm(clone.dir, { recursive: true, force: true });
  });
});

function listening(server: Server): Promise<number> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    resolve(typeof address === 'object' && address ? address.port : 0);
  }));
}

/**
 * PATCH of one record over HTTP → the new answer by UDP, in a zone of 100 records. Peer: the same change through PowerDNS's
 * own API (gsqlite3) to its own answer, in turns of the same minutes; without pdns_server and sqlite3 it says so.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Product } from '../test/support/product';
import { anyFreePort } from '../src/dev/ports';
import { Asker, forgetRates, hasAddress, idOf, makeZone } from './support/dns';
import { line, percentile, print } from './statistics';

const records = 100;
const warmUp = 50;
const runs = Number(process.env['RUNS'] ?? 1_000);
const turn = 50;
const target = { p50Ms: 20, p99Ms: 100 };

/** Changes the address of `n<i>` and answers how long it took until it was answered. */
type Change = (i: number, address: string) => Promise<number>;

async function main(): Promise<void> {
  const product = await Product.start({ RATE_MANAGEMENT_PER_5_MINUTES: '1000000' });
  const powerdns = ['pdns_server', 'sqlite3'].every((tool) => spawnSync('which', [tool]).status === 0) ? await PowerDns.start() : null;
  const asker = new Asker(product.file.dns);
  try {
    const ours = await changeOurs(product, asker);
    const samples = { ours: [] as number[], powerdns: [] as number[] };
    for (let run = -warmUp; run < runs; run++) {
      const address = `9.${(run >> 8) & 255}.${run & 255}.${run < 0 ? 1 : 2}`;
      const took = { ours: await ours(run, address), powerdns: powerdns ? await powerdns.change(run, address) : Number.NaN };
      if (run % turn === 0) await forgetRates(product);
      if (run < 0) continue;
      samples.ours.push(took.ours);
      samples.powerdns.push(took.powerdns);
    }
    const met = percentile(samples.ours, 0.5) <= target.p50Ms && percentile(samples.ours, 0.99) <= target.p99Ms;
    print(`${line('PATCH → new answer by UDP', samples.ours, [0.5, 0.95, 0.99])}  target p50 ${target.p50Ms}, p99 ${target.p99Ms}: ${met ? 'met' : 'missed'}`);
    if (!powerdns) return print('peer: not measured, pdns_server or sqlite3 is not installed');
    print(line('peer: PowerDNS API → its new answer', samples.powerdns, [0.5, 0.95, 0.99]));
    print(`ratio of the medians: ${(percentile(samples.ours, 0.5) / percentile(samples.powerdns, 0.5)).toFixed(2)}`);
  } finally {
    asker.close();
    powerdns?.stop();
    await product.stop();
  }
}

async function changeOurs(product: Product, asker: Asker): Promise<Change> {
  const zone = await makeZone(product, 'move.test', records);
  const { body } = await product.ask('GET', `${zone.path}/records?sort=name`);
  const found = Array.isArray(body['records']) ? body['records'] : [];
  const ids = new Map(found.map((record: { name?: string }) => [record.name ?? '', idOf(record)]));
  return async (i, address) => {
    const name = `n${Math.abs(i) % records}`;
    const start = performance.now();
    const { status, body: answer } = await product.ask('PATCH', `${zone.path}/records/${ids.get(name)}`, { body: { value: address } });
    if (status !== 200) throw new Error(`Not changed: ${JSON.stringify(answer)}`);
    return await asker.until(`${name}.move.test`, 'A', (message) => hasAddress(message, address)) - start;
  };
}

class PowerDns {
  private readonly agent = new Agent({ keepAlive: true });
  private readonly asker: Asker;

  private constructor(private readonly parts: { child: ChildProcess; folder: string; apiPort: number; port: number }) {
    this.asker = new Asker({ host: '127.0.0.1', port: parts.port });
  }

  static async start(): Promise<PowerDns> {
    const folder = mkdtempSync(join(tmpdir(), 'dns-propagation-'));
    const [port, apiPort] = [await anyFreePort(), await anyFreePort()];
    const schema = readFileSync('/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql', 'utf8');
    spawnSync('sqlite3', [join(folder, 'zones.sqlite3')], { input: schema });
    const child = spawn('pdns_server', [`--config-dir=${folder}`, `--socket-dir=${folder}`, '--daemon=no', '--guardian=no', '--launch=gsqlite3', `--gsqlite3-database=${join(folder, 'zones.sqlite3')}`,
      '--local-address=127.0.0.1', `--local-port=${port}`, '--api=yes', '--api-key=bench', '--webserver=yes', '--webserver-address=127.0.0.1', `--webserver-port=${apiPort}`, '--loglevel=3', '--disable-syslog'],
    { stdio: ['ignore', 'ignore', 'inherit'] });
    const server = new PowerDns({ child, folder, apiPort, port });
    const rrsets = Array.from({ length: records }, (_, i) => ({ name: `n${i}.move.test.`, type: 'A', ttl: 300, records: [{ content: '8.8.8.8', disabled: false }] }));
    await server.ready();
    await server.send('POST', '/zones', { name: 'move.test.', kind: 'Native', soa_edit_api: 'INCREASE', nameservers: ['ns1.platform.test.'], rrsets });
    return server;
  }

  async change(i: number, address: string): Promise<number> {
    const name = `n${Math.abs(i) % records}.move.test`;
    const start = performance.now();
    await this.send('PATCH', '/zones/move.test.', { rrsets: [{ name: `${name}.`, type: 'A', ttl: 300, changetype: 'REPLACE', records: [{ content: address, disabled: false }] }] });
    return await this.asker.until(name, 'A', (message) => hasAddress(message, address)) - start;
  }

  stop(): void {
    this.agent.destroy();
    this.asker.close();
    this.parts.child.kill('SIGKILL');
    rmSync(this.parts.folder, { recursive: true, force: true });
  }

  private async ready(): Promise<void> {
    for (const end = performance.now() + 10_000; ; await new Promise((done) => setTimeout(done, 50))) {
      const up = await this.send('GET', '/zones').then(() => true, () => false);
      if (up) return;
      if (performance.now() > end) throw new Error('pdns_server did not start.');
    }
  }

  private send(method: string, path: string, body?: object): Promise<void> {
    const text = body ? JSON.stringify(body) : '';
    const headers = { 'x-api-key': 'bench', 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    return new Promise((done, fail) => {
      const sent = request(`http://127.0.0.1:${this.parts.apiPort}/api/v1/servers/localhost${path}`, { method, headers, agent: this.agent }, (response) => {
        response.resume().on('end', () => ((response.statusCode ?? 500) < 300 ? done() : fail(new Error(`PowerDNS answered ${response.statusCode} to ${method} ${path}.`))));
      });
      sent.on('error', fail).end(text);
    });
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

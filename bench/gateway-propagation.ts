/**
 * From a policy that is sent to the first request judged by it: 500 zones, 200 PUTs of the API one after another while requests go
 * on; a probe asks the gateway until it is judged anew. The whole product runs as `npm start` runs it. ZONES and CHANGES make it
 * shorter. There is no peer: nginx with ModSecurity reads its files anew, 7.5 s for 50 zones.
 */
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Product } from '../test/support/product';
import { writeZone } from '../test/support/gateway-world';
import { line, percentile, print } from './statistics';
import { makeProxiedZone } from './support/proxied-zone';

const zones = Number(process.env['ZONES'] ?? 500);
const changes = Number(process.env['CHANGES'] ?? 200);
const clients = 8;
const targetMs = 500;
const agent = new Agent({ keepAlive: true });
const blocks = { mode: 'block', customRules: [{ id: 'probe', match: { field: 'path', op: 'eq', value: '/probe' }, action: 'block', status: 451 }] };

function ask(url: string, host: string): Promise<number> {
  return new Promise((done, fail) => {
    request(new URL('/probe', url), { agent, headers: { host } }, (response) => response.resume().on('end', () => done(response.statusCode ?? 0))).on('error', fail).end();
  });
}

/** Zones of one project that are served; the first is made by the API, the others are rows. */
async function makeZones(product: Product, originPort: number): Promise<{ policyPath: string; host: string }[]> {
  const first = await makeProxiedZone(product, 'propagation.test', originPort);
  const made = [{ policyPath: first.policyPath, host: first.host }];
  const { pool } = product.database;
  for (let i = 1; i < zones; i++) {
    const host = `z${i}.bench.test`;
    const id = await writeZone({ url: '', database: product.database }, host, [{ name: '@', value: '127.0.0.1', port: originPort }], 'active');
    await pool.query(`with moved as (update dns_zone set (org_id, project_id) = (select org_id, project_id from dns_zone where id = $1) where id = $2 returning project_id, domain)
      insert into dns_nameserver_assignment (project_id, domain, token, verify_token) select project_id, domain, md5(domain), md5(domain) from moved`, [first.id, id]);
    made.push({ policyPath: `/dns/zones/${id}/security-gateway`, host });
  }
  return made;
}

async function put(product: Product, path: string, policy: object): Promise<void> {
  const { status, body } = await product.ask('PUT', path, { body: policy });
  if (status !== 200) throw new Error(`No policy: ${JSON.stringify(body)}`);
}

async function main(): Promise<void> {
  const origin = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1');
  await new Promise((listening) => origin.once('listening', listening));
  const product = await Product.start({ RATE_MANAGEMENT_PER_5_MINUTES: '1000000', LOG_LEVEL: 'warn' });
  let loading = true;
  try {
    const { port } = origin.address() as AddressInfo;
    const made = await makeZones(product, port);
    for (const { policyPath } of made) await put(product, policyPath, { mode: 'block' });
    const url = product.file.gateway?.httpUrl ?? '';
    for (const { host } of made) while ((await ask(url, host)) !== 200);
    const load = Promise.all(Array.from({ length: clients }, async (_, client) => {
      for (let i = client; loading; i += clients) await ask(url, made[i % made.length]?.host ?? '');
    }));
    const times: number[] = [];
    for (let i = 0; i < changes; i++) {
      const { policyPath = '', host = '' } = made[(i * 7) % made.length] ?? {};
      const wanted = (await ask(url, host)) === 451 ? 200 : 451;
      const sentAt = performance.now();
      const written = put(product, policyPath, wanted === 451 ? blocks : { mode: 'block' });
      while ((await ask(url, host)) !== wanted);
      times.push(performance.now() - sentAt);
      await written;
    }
    loading = false;
    await load;
    const p99 = percentile(times, 0.99);
    print(`${line(`gateway-propagation: ${changes} PUTs in ${made.length} zones under load`, times, [0.5, 0.95, 0.99])}  target p99 ${targetMs}: ${p99 <= targetMs ? 'met' : 'missed'}`);
  } finally {
    loading = false;
    agent.destroy();
    await product.stop();
    origin.closeAllConnections();
    origin.close();
  }
}

void main();

/**
 * Blocked requests through the gateway into the events and the summary that the API shows: none may be missing, and each is to be
 * seen within a second. 10,000 requests of 16 clients, then 200 probes whose own event is asked for until it is there. The whole
 * product runs as `npm start` runs it. COUNT and PROBES make it shorter. There is no peer: ModSecurity writes a log file.
 */
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Product } from '../test/support/product';
import { makeProxiedZone } from './support/proxied-zone';
import { line, percentile, print } from './statistics';

const count = Number(process.env['COUNT'] ?? 10_000);
const probes = Number(process.env['PROBES'] ?? 200);
const clients = 16;
const targetMs = 1_000;
const giveUpMs = 30_000;

async function main(): Promise<void> {
  const origin = createServer((_, response) => response.end('origin')).listen(0, '127.0.0.1');
  await new Promise((listening) => origin.once('listening', listening));
  const product = await Product.start({ RATE_MANAGEMENT_PER_5_MINUTES: '1000000', LOG_LEVEL: 'warn' });
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  try {
    const { port } = origin.address() as AddressInfo;
    const zone = await makeProxiedZone(product, 'events.test', port);
    const get = (path: string) => visit(new URL(path, product.file.gateway?.httpUrl), zone.host, agent);
    await eventually(async () => (await get('/')).status === 200, 'the name to be served');
    const policy = { mode: 'block', customRules: [{ id: 'blocked', match: { field: 'path', op: 'starts_with', value: '/blocked' }, action: 'block' }] };
    const put = await product.ask('PUT', zone.policyPath, { body: policy });
    if (put.status !== 200) throw new Error(`No policy: ${JSON.stringify(put.body)}`);
    await eventually(async () => (await get('/blocked/first')).status === 403, 'the policy to be in force');

    const startedAt = performance.now();
    let sent = 0;
    await Promise.all(Array.from({ length: clients }, async () => {
      for (let i = (sent += 1); i <= count; i = sent += 1) if ((await get(`/blocked/${i % 100}`)).status !== 403) throw new Error('A request was not blocked.');
    }));
    const seconds = (performance.now() - startedAt) / 1_000;
    const isWhole = async () => (await totals(product, zone.policyPath))['blocked'] === count + 1;
    await eventually(isWhole, 'every request in the summary').catch(() => undefined);
    const summed = (await totals(product, zone.policyPath))['blocked'] ?? 0;
    const { events, rows } = await eventCounts(product, zone.policyPath);
    print(`${count} blocked requests at ${(count / seconds).toFixed(0)}/s: ${summed - 1} in the summary, ${events - 1} in the counts of ${rows} events: ${summed === count + 1 && events === count + 1 ? 'met' : 'missed'}`);

    const seen: number[] = [];
    for (let i = 0; i < probes; i++) {
      const sentAt = performance.now();
      const { eventId } = await get(`/blocked/probe-${i}`);
      await eventually(async () => (await product.ask('GET', `${zone.policyPath}/events/${eventId}`)).status === 200, 'an event to be seen');
      seen.push(performance.now() - sentAt);
      // At another moment of the quarter second between two batches.
      await new Promise((next) => setTimeout(next, (i * 37) % 250));
    }
    print(`${line('request → its event in the API', seen, [0.5, 0.95, 0.99])}  target p99 ${targetMs}: ${percentile(seen, 0.99) <= targetMs ? 'met' : 'missed'}`);
  } finally {
    agent.destroy();
    await product.stop();
    origin.closeAllConnections();
    origin.close();
  }
}

async function totals(product: Product, path: string): Promise<Record<string, number>> {
  const { body } = await product.ask('GET', `${path}/summary?hours=1`);
  const summary = body['summary'];
  return typeof summary === 'object' && summary !== null && 'totals' in summary ? Object.fromEntries(Object.entries(summary.totals ?? {}).map(([name, n]) => [name, Number(n)])) : {};
}

/** The sum over every page. */
async function eventCounts(product: Product, path: string): Promise<{ events: number; rows: number }> {
  let [events, rows, cursor] = [0, 0, ''];
  do {
    const { body } = await product.ask('GET', `${path}/events?action=block&limit=100${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`);
    const page: { count?: number }[] = Array.isArray(body['events']) ? body['events'] : [];
    events += page.reduce((sum, event) => sum + (event.count ?? 0), 0);
    rows += page.length;
    cursor = typeof body['nextCursor'] === 'string' ? body['nextCursor'] : '';
  } while (cursor !== '');
  return { events, rows };
}

function visit(url: URL, host: string, agent: Agent): Promise<{ status: number; eventId: string }> {
  return new Promise((done, fail) => {
    request(url, { agent, headers: { host } }, (response) => {
      response.on('error', fail).on('end', () => done({ status: response.statusCode ?? 0, eventId: String(response.headers['x-gateway-event'] ?? '') })).resume();
    }).on('error', fail).end();
  });
}

async function eventually(condition: () => Promise<boolean>, what: string): Promise<void> {
  const end = performance.now() + giveUpMs;
  while (!await condition()) {
    if (performance.now() > end) throw new Error(`Waited in vain for ${what}.`);
    await new Promise((next) => setTimeout(next, 5));
  }
}

void main();

/**
 * From a policy that is sent to the first request judged by it: 500 zones, 200 changes one after another while requests go on.
 * The policy is written as the API commits it (row and notification in one statement); a probe asks until it is judged anew.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, request } from 'node:http';
import { percentile, print } from './statistics';
import { withBenchDatabase } from './support/database';
import { addZone, withGatewayProcess, writePolicy } from './support/gateway';

const zones = Number(process.env['ZONES'] ?? 500);
const changes = Number(process.env['CHANGES'] ?? 200);
const targetMs = 500;
const agent = new Agent({ keepAlive: true });

function ask(port: number, host: string): Promise<number> {
  return new Promise((done, fail) => {
    request({ port, host: '127.0.0.1', path: '/probe', agent, headers: { host } }, (response) => response.resume().on('end', () => done(response.statusCode ?? 0))).on('error', fail).end();
  });
}

const deny = { mode: 'block', customRules: [{ id: 'probe', match: { field: 'path', op: 'eq', value: '/probe' }, action: 'block', status: 451 }] };

void withBenchDatabase(async (database) => {
  const origin = createServer((_request, response) => response.end('ok'));
  await new Promise<void>((done) => origin.listen(0, '127.0.0.1', done));
  const { port } = origin.address() as AddressInfo;
  const ids: string[] = [];
  for (let i = 0; i < zones; i++) ids.push(await addZone(database, `z${i}.bench.test`, [{ name: '@', value: '127.0.0.1', port }], { mode: 'block' }));
  await withGatewayProcess(database, { core: null }, async ({ httpPort }) => {
    let loading = true;
    const load = Promise.all(Array.from({ length: 8 }, async (_, worker) => {
      for (let i = worker; loading; i += 8) await ask(httpPort, `z${i % zones}.bench.test`);
    }));
    const times: number[] = [];
    for (let i = 0; i < changes; i++) {
      const host = `z${(i * 7) % zones}.bench.test`;
      const wanted = (await ask(httpPort, host)) === 451 ? 200 : 451;
      const sentAt = performance.now();
      void writePolicy(database, ids[(i * 7) % zones] ?? '', wanted === 451 ? deny : { mode: 'block' });
      while ((await ask(httpPort, host)) !== wanted);
      times.push(performance.now() - sentAt);
    }
    loading = false;
    await load;
    const p99 = percentile(times, 0.99);
    print(`gateway-propagation: ${changes} changes in ${zones} zones under load: p50 ${percentile(times, 0.5).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms; target ${targetMs} ms: ${p99 <= targetMs ? 'met' : 'missed'}`);
  });
  agent.destroy();
  origin.close();
});

/** Resident memory of one gateway process with 0 and with 2,000 zones, each with a policy and two proxied names: the slope per zone. */
import { print } from './statistics';
import { withBenchDatabase } from './support/database';
import { addZone, residentBytes, withGatewayProcess } from './support/gateway';

const zones = Number(process.env['ZONES'] ?? 2_000);
const targetKb = 50;
const policy = {
  mode: 'block', ipLists: { deny: ['192.0.2.0/24', '198.51.100.0/24'] },
  customRules: [{ id: 'admin', match: { all: [{ field: 'path', op: 'starts_with', value: '/admin' }, { not: { field: 'ip', op: 'in', value: ['203.0.113.0/24'] } }] }, action: 'block' }],
  rateLimits: [{ id: 'login', match: { field: 'path', op: 'eq', value: '/login' } }],
};

async function settledBytes(pid: number): Promise<number> {
  let least = Infinity;
  for (let i = 0; i < 10; i++) {
    await new Promise((done) => setTimeout(done, 500));
    least = Math.min(least, residentBytes(pid));
  }
  return least;
}

void withBenchDatabase((database) => withGatewayProcess(database, { core: null }, async ({ child, httpPort, adminPort }) => {
  const before = await settledBytes(child.pid ?? 0);
  for (let i = 0; i < zones; i++) await addZone(database, `z${i}.bench.test`, [{ name: '@', value: '127.0.0.1', port: 9 }, { name: 'www', value: '127.0.0.1', port: 9 }], policy);
  const served = async (): Promise<number> => {
    const state: unknown = await (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).json();
    return JSON.stringify(state).includes(`"zones":${zones}`) ? zones : 0;
  };
  while ((await served()) < zones) await new Promise((done) => setTimeout(done, 200));
  // Every policy is compiled by its first request.
  for (let i = 0; i < zones; i++) await fetch(`http://127.0.0.1:${httpPort}/`, { headers: { host: `z${i}.bench.test` } }).then((answer) => answer.text());
  const after = await settledBytes(child.pid ?? 0);
  const perZone = (after - before) / 1_024 / zones;
  print(`gateway-memory: ${(before / 2 ** 20).toFixed(0)} MB with 0 zones, ${(after / 2 ** 20).toFixed(0)} MB with ${zones}; ${perZone.toFixed(1)} KB per zone; target ${targetKb} KB: ${perZone <= targetKb ? 'met' : 'missed'}`);
}));

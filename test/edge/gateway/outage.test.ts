import { createListener, type Listener } from '../../../src/db/listen';
import { openDatabase, type Database } from '../../../src/db/client';
import { silent } from '../../support/accepted-work';
import { openGate, type Gate } from '../../support/gate';
import { withGateway } from '../../support/gateway-world';
import { until } from '../../support/until';

const world = withGateway();
const get = (host: string, more = '') => world.raw(`GET / HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`);
const blocked = (host: string) => get(host, 'X-Block: 1\r\n').then(({ status }) => status);
const newOrigin = () => world.origin((_request, response) => response.end('through'));

test('a policy whose signal was lost is found by the poll', async () => {
  const { pool } = world.test.database;
  const origin = await newOrigin();
  const zoneId = await world.zone('lost.test', [{ name: '@', value: '127.0.0.1', port: origin.port }], { policy: { mode: 'monitor' } });
  expect(await blocked('lost.test')).toBe(200);
  await pool.query('alter table gateway_policy disable trigger gateway_policy_changed');
  try {
    await world.writePolicy(zoneId, { mode: 'block' });
    await until(async () => await blocked('lost.test') === 403, 'the policy');
  } finally {
    await pool.query('alter table gateway_policy enable trigger gateway_policy_changed');
  }
});

test('a policy that cannot be read leaves the last good one in force, until there is a better one', async () => {
  const { pool } = world.test.database;
  const origin = await newOrigin();
  const zoneId = await world.zone('bad.test', [{ name: '@', value: '127.0.0.1', port: origin.port }], { policy: { mode: 'block' } });
  expect(await blocked('bad.test')).toBe(403);
  await pool.query(`update gateway_policy set version = version + 1, document = '{"mode":"block","customRules":7}', updated_at = now() where zone_id = $1`, [zoneId]);
  const other = await world.zone('other.test', [{ name: '@', value: '127.0.0.1', port: origin.port }], { policy: { mode: 'monitor' } });
  await world.writePolicy(other, { mode: 'block' });
  await until(async () => await blocked('other.test') === 403, 'a later policy of another zone');
  expect(await blocked('bad.test')).toBe(403);
  expect((await pool.query('select from gateway_ack where zone_id = $1 and policy_version = 2', [zoneId])).rowCount).toBe(0);
  await world.writePolicy(zoneId, { mode: 'monitor' });
  await until(async () => await blocked('bad.test') === 200, 'the next policy');
});

describe('while the database is away', () => {
  let gate: Gate;
  const opened: (() => Promise<unknown>)[] = [];
  const through = (): { db: Database; listener: Listener } => {
    const db = openDatabase({ url: gate.url, max: 5, process: 'test', log: silent });
    const listener = createListener({ url: gate.url, process: 'gateway', log: silent });
    opened.push(() => listener.close(), () => db.close());
    return { db, listener };
  };
  afterAll(async () => {
    await world.restart();
    for (const close of opened) await close();
    await gate.shut();
  });

  test('no request fails, not even of a gateway that starts meanwhile; afterwards changes are heard again', async () => {
    const origin = await newOrigin();
    const zoneId = await world.zone('away.test', [{ name: '@', value: '127.0.0.1', port: origin.port }], { policy: { mode: 'block' } });
    gate = await openGate(world.test.url);
    await world.restart(through());
    const failed: number[] = [];
    const load = async (requests: number) => {
      for (let i = 0; i < requests; i++) {
        const statuses = await Promise.all([get('away.test').then(({ status }) => status), blocked('away.test')]);
        if (statuses[0] !== 200 || statuses[1] !== 403) failed.push(...statuses);
      }
    };
    await load(20);
    await gate.shut();
    await load(50);
    await world.restart(through());
    await load(50);
    await world.writePolicy(zoneId, { mode: 'monitor' });
    await gate.open();
    await until(async () => await blocked('away.test') === 200, 'the policy written meanwhile');
    expect(failed).toEqual([]);
  });
});

import { withDnsWorld } from '../support/dns-world';

const world = withDnsWorld(42);
const sync = (zoneId: string, json?: unknown) => world.ask('POST', `/dns/zones/${zoneId}/sync`, json === undefined ? {} : { json });
const record = (zoneId: string, value: string) => world.ask('POST', `/dns/zones/${zoneId}/records`, { json: { type: 'A', name: 'www', value } });
const acks = (zoneId: string) => world.api.deps.db.pool.query('select version from dns_ack where zone_id = $1', [zoneId]);

test('a zone that is everywhere is in sync: no version, no serial, and the second answer is the first', async () => {
  const zone = await world.zone('quiet.test');
  await sync(zone.id);
  const before = (await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone;
  const { status, body } = await sync(zone.id, { force: true });
  expect({ status, sync: body.sync }).toMatchObject({ status: 200, sync: { status: 'in_sync', drift: false, cached: false, versionBefore: before.version, versionAfter: before.version, serial: before.serial, required: [], servers: [{ name: 'edge-test', version: before.version, inSync: true }] } });
  expect(body.zone).toMatchObject({ version: before.version, serial: before.serial, sync: { status: 'synced', lastError: null } });
  expect(body.operation).toMatchObject({ kind: 'dns.sync', state: 'succeeded' });
  expect((await sync(zone.id)).body).toMatchObject({ sync: { cached: true }, operation: null });
});

test('a server that lost its acknowledgement is told again and the answer says applied', async () => {
  const zone = await world.zone('behind.test');
  await sync(zone.id);
  const loseAcknowledgement = async () => {
    await world.api.deps.db.pool.query('update dns_ack set version = 0 where zone_id = $1', [zone.id]);
    return sync(zone.id, { force: true });
  };
  let { body } = await loseAcknowledgement();
  // The server's own poll mends it, too: where that was faster, once more.
  for (let tries = 0; tries < 10 && !body.sync.drift; tries++) ({ body } = await loseAcknowledgement());
  expect(body.sync).toMatchObject({ status: 'applied', drift: true, versionBefore: 0, servers: [{ inSync: true }] });
  expect((await acks(zone.id)).rows).toEqual([{ version: body.zone.version }]);
});

test('while no server lives the answer is partial after its time, dryRun at once, and the operation stays open for the workflow', async () => {
  const zone = await world.zone('alone.test');
  await world.stopServer();
  try {
    await record(zone.id, '192.0.2.1');
    const looked = await sync(zone.id, { dryRun: true });
    expect(looked.body).toMatchObject({ sync: { status: 'partial', dryRun: true, drift: true }, operation: null });
    const { status, body } = await sync(zone.id);
    expect({ status, sync: body.sync.status, state: body.operation.state }).toEqual({ status: 200, sync: 'partial', state: 'pending' });
  } finally {
    await world.restartServer();
  }
  expect((await world.dig('www.alone.test', 'A')).answers).toEqual(['www.alone.test A 300 192.0.2.1']);
}, 20_000);

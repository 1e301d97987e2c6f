import { withDnsWorld } from '../support/dns-world';

const world = withDnsWorld(55);
const path = (zoneId: string) => `/dns/zones/${zoneId}`;

test('checks, record writes, changes of name servers and deletions of one zone at the same moment all get an answer of theirs', async () => {
  for (let round = 0; round < 6; round++) {
    const zone = await world.zone(`race-${round}.test`);
    world.registry.delegate(`race-${round}.test`, zone.nameservers);
    const writes = Array.from({ length: 4 }, (_, i) => world.ask('POST', `${path(zone.id)}/records`, { json: { type: 'NS', name: `sub${i}`, value: 'ns1.example.com' } }));
    const answers = await Promise.all([
      ...writes, world.ask('POST', `${path(zone.id)}/verify`), world.ask('PATCH', path(zone.id), { json: { customNameservers: [`ns1.race-${round}.test`, `ns2.race-${round}.test`] } }),
      world.ask('POST', `${path(zone.id)}/verify`), ...(round % 2 === 0 ? [world.ask('DELETE', path(zone.id))] : []),
    ]);
    expect(answers.map(({ status }) => status).filter((status) => status !== 200 && status !== 404)).toEqual([]);
    await world.ask('DELETE', path(zone.id));
  }
}, 60_000);

test('claims of several projects on one name, made and checked at the same moment: one is proven, none fails', async () => {
  const tenants = [world.tenant, await world.newTenant(), await world.newTenant()];
  const zones = await Promise.all(tenants.map((tenant) => world.zone('shared.test', tenant)));
  world.registry.delegate('shared.test', zones[1]?.nameservers ?? []);
  const checked = await Promise.all(zones.map(({ id }, i) => world.ask('POST', `${path(id)}/verify`, { tenant: tenants[i] ?? world.tenant })));
  expect(checked.map(({ status, body }) => ({ status, zone: body.zone.status }))).toEqual([{ status: 200, zone: 'pending' }, { status: 200, zone: 'active' }, { status: 200, zone: 'pending' }]);
  const { rows } = await world.api.deps.db.pool.query(`select id from dns_zone where domain = 'shared.test' and served`);
  expect(rows).toEqual([{ id: zones[1]?.id }]);
}, 60_000);

test('a parent delegating to a zone while that is checked and changed: neither waits for the other for ever', async () => {
  const parent = await world.zone('above.test');
  world.registry.delegate('above.test', parent.nameservers);
  await world.ask('POST', `${path(parent.id)}/verify`);
  const child = await world.zone('child.above.test');
  for (let round = 0; round < 8; round++) {
    const delegating = await Promise.all([
      ...child.nameservers.map((value) => world.ask('POST', `${path(parent.id)}/records`, { json: { type: 'NS', name: 'child', value } })),
      world.ask('PATCH', path(child.id), { json: { customNameservers: round % 2 === 0 ? ['ns1.child.above.test', 'ns2.child.above.test'] : [] } }),
      world.ask('POST', `${path(child.id)}/verify`),
      world.ask('POST', `${path(child.id)}/records`, { json: { type: 'NS', name: `sub${round}`, value: 'ns1.example.com' } }),
    ]);
    expect(delegating.map(({ status }) => status)).toEqual(Array(5).fill(200));
    const ids = delegating.slice(0, 2).map(({ body }) => body.record.id);
    const removed = await Promise.all([...ids.map((id) => world.ask('DELETE', `${path(parent.id)}/records/${id}`)), world.ask('PATCH', path(child.id), { json: { customNameservers: [] } })]);
    expect(removed.map(({ status }) => status)).toEqual([200, 200, 200]);
  }
}, 60_000);

import { createListener } from '../../src/db/listen';
import { platformOf } from '../../src/dns/rules/platform';
import { DatabaseFeed } from '../../src/edge/dns/database-feed';
import { silent } from '../support/accepted-work';
import { withDnsWorld } from '../support/dns-world';
import { until } from '../support/until';

const world = withDnsWorld(61);

const record = (zoneId: string, json: unknown) => world.ask('POST', `/dns/zones/${zoneId}/records?wait=published`, { json });
const answersOf = async (name: string) => world.dig(name, 'A');

test('a record that gets another name is gone from the old one', async () => {
  const { id } = await world.zone('renamed.test');
  const { body } = await record(id, { type: 'A', name: 'old', value: '192.0.2.1' });
  await until(async () => (await answersOf('old.renamed.test')).rcode === 'NOERROR');
  await world.ask('PATCH', `/dns/zones/${id}/records/${body.record.id}`, { json: { name: 'new' } });
  await until(async () => (await answersOf('new.renamed.test')).rcode === 'NOERROR');
  expect(await answersOf('old.renamed.test')).toEqual({ rcode: 'NXDOMAIN', answers: [] });
});

test('what was deleted for good while the server was not looking is not answered', async () => {
  const { id } = await world.zone('trimmed.test');
  const { body } = await record(id, { type: 'A', name: 'gone', value: '192.0.2.1' });
  await until(async () => (await answersOf('gone.trimmed.test')).rcode === 'NOERROR');
  const { prisma } = world.api.deps.db;
  await world.ask('DELETE', `/dns/zones/${id}/records/${body.record.id}`);
  await prisma.$executeRawUnsafe('delete from dns_record where id = $1', body.record.id);
  await until(async () => (await answersOf('gone.trimmed.test')).rcode === 'NXDOMAIN');
});

test('a server whose row was removed says again that it is here and what it has', async () => {
  const { id } = await world.zone('forgotten.test');
  const { prisma } = world.api.deps.db;
  const acked = async () => (await prisma.$queryRawUnsafe<{ version: number }[]>('select version from dns_ack where zone_id = $1', id)).map(({ version }) => version);
  await until(async () => (await acked()).length === 1);
  await prisma.$executeRawUnsafe('delete from dns_server');
  await until(async () => (await acked()).length === 1);
}, 30_000);

test('a zone of a database that was set back is answered as the database says', async () => {
  const { id } = await world.zone('back.test');
  await record(id, { type: 'A', name: 'kept', value: '192.0.2.1' });
  await record(id, { type: 'A', name: 'lost', value: '192.0.2.2' });
  await until(async () => (await answersOf('lost.back.test')).rcode === 'NOERROR');
  const { prisma } = world.api.deps.db;
  await prisma.$transaction([
    prisma.$executeRawUnsafe(`delete from dns_record where zone_id = $1 and name = 'lost'`, id),
    prisma.$executeRawUnsafe('delete from dns_change_set where zone_id = $1 and version = 3', id),
    prisma.$executeRawUnsafe('update dns_zone set version = 2 where id = $1', id),
  ]);
  await until(async () => (await answersOf('lost.back.test')).rcode === 'NXDOMAIN');
  expect((await answersOf('kept.back.test')).answers).toEqual(['kept.back.test A 300 192.0.2.1']);
});

test('names of our own appear and go with the zones they were made for', async () => {
  const { id, nameservers } = await world.zone('names.test');
  const [name = ''] = nameservers;
  await until(async () => (await answersOf(name)).rcode === 'NOERROR');
  const serialBefore = await world.dig('ns.holdfast.test', 'SOA');
  await world.api.deps.db.prisma.$executeRawUnsafe(`update dns_zone set deleted_at = now(), purge_at = now(), purged_at = now(), served = false where id = $1`, id);
  await until(async () => (await answersOf(name)).rcode === 'NXDOMAIN');
  expect(await world.dig('ns.holdfast.test', 'SOA')).not.toEqual(serialBefore);
});

test('of two servers of one name the one that leaves takes nothing from the other', async () => {
  const { id } = await world.zone('twice.test');
  const { config, db, log } = world.api.deps;
  const listener = createListener({ url: config.DATABASE_URL, process: 'edge', log: silent });
  const feed = () => new DatabaseFeed({ db, listener, platform: platformOf(config), serverId: 'rolling', addresses: [], pollMs: 200, log });
  const [old, fresh] = [feed(), feed()];
  await old.start(() => 'applied');
  await fresh.start(() => 'applied');
  const { prisma } = db;
  const acks = () => prisma.$queryRawUnsafe<unknown[]>(`select 1 from dns_ack where server_id = 'rolling' and zone_id = $1`, id);
  await until(async () => (await acks()).length === 1);
  await old.stop();
  expect(await acks()).toHaveLength(1);
  await fresh.stop();
  expect(await prisma.$queryRawUnsafe<unknown[]>(`select 1 from dns_server where id = 'rolling'`)).toEqual([]);
  await listener.close();
});

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { storeUsage } from '../../src/billing/service';
import { inTransaction } from '../../src/db/transaction';
import { listOwners } from '../../src/dns/store/feed';
import { QueryUsage } from '../../src/edge/dns/query-usage';
import { readSnapshot, SnapshotWriter } from '../../src/edge/dns/snapshot-file';
import { ZoneStore } from '../../src/edge/dns/zone-store';
import { silentLog } from '../support/dns-client';
import { fullZone } from '../support/dns-feed';
import { withDnsWorld } from '../support/dns-world';
import { until } from '../support/until';

const world = withDnsWorld(62);
const usageOf = async (orgId: string) => world.api.deps.db.pool.query<{ key: string; quantity: string; minute: Date }>(
  'select key, quantity::int::text as quantity, occurred_at as minute from usage_event where org_id = $1 and metric = $2 order by occurred_at', [orgId, 'dns.queries'],
).then(({ rows }) => rows);

test('billing is told how often a zone was asked in which minute, also when the database was away for one', async () => {
  const { id } = await world.zone('counted.test');
  await until(async () => (await world.dig('counted.test', 'SOA')).rcode === 'NOERROR');
  world.server.takeCounts();
  const { db } = world.api.deps;
  let nowMs = Math.floor(Date.now() / 60_000) * 60_000 - 180_000;
  let away = false;
  const usage = new QueryUsage({
    serverId: 'ns1', boot: 'b1', takeCounts: () => world.server.takeCounts(), nowMs: () => nowMs, log: silentLog, ownersOf: (ids) => listOwners(db.prisma, ids),
    store: (facts) => (away ? Promise.reject(new Error('away')) : inTransaction(db, (tx) => storeUsage(tx, facts))),
  });
  for (const [asked, isAway] of [[3, false], [2, true], [1, false]] as const) {
    for (let i = 0; i < asked; i++) await world.dig('counted.test', 'SOA');
    away = isAway;
    nowMs += 60_000;
    await usage.tell();
  }
  await usage.close();
  const events = await usageOf(world.tenant.orgId);
  expect(events.map(({ quantity }) => quantity)).toEqual(['3', '2', '1']);
  expect(events[0]?.key).toBe(`dns:ns1:b1:${id}:${events[0]?.minute.toISOString().slice(0, 16)}`);
});

test('a snapshot gives the zones back as they were, or is not believed at all', async () => {
  const home = await mkdtemp(join(tmpdir(), 'holdfast-test-snapshot-'));
  const path = join(home, 'zones');
  try {
    expect(await readSnapshot(path)).toBeNull();
    const store = new ZoneStore();
    const lines = ['@ MX 300 10 mail.example.com', '@ TXT 60 "quoted" and ü', '@ CAA 300 0 issue "ca.example"', 'sub NS 300 ns.other.test', 'x CNAME 60 @.example.com', '*.w AAAA 60 2001:db8::1'].map((line) => line.replace('@.example', 'y.example'));
    store.apply(fullZone('example.com', lines, { version: 7 }));
    store.apply(fullZone('empty.test', []));
    const writer = new SnapshotWriter(path, store, silentLog);
    await writer.close();
    const zones = await readSnapshot(path);
    const again = new ZoneStore();
    for (const zone of zones ?? []) expect(again.apply(zone)).toBe('applied');
    expect([...again.all()].map(({ domain, version, serial, nodes }) => ({ domain, version, serial, nodes }))).toEqual([...store.all()].map(({ domain, version, serial, nodes }) => ({ domain, version, serial, nodes })));
    const text = await readFile(path, 'utf8');
    for (const broken of [text.slice(0, -10), text.replace(/^.*empty.*\n/m, ''), 'else', '']) {
      await writeFile(path, broken);
      await expect(readSnapshot(path)).rejects.toThrow('');
    }
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

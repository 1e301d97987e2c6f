/** From the start of a name server to its sockets being bound, with 1,000 zones of 100 records each in the database (contract dns.md §9: 3 s at most). */
import type { Database } from '../src/db/client';
import type { Listener } from '../src/db/listen';
import { createLog } from '../src/core/log';
import { newId } from '../src/core/ids';
import { DatabaseFeed } from '../src/edge/dns/database-feed';
import { startDnsServer } from '../src/edge/dns/server';
import type { Platform } from '../src/dns/rules/platform';
import { percentile, print } from './statistics';
import { withBenchDatabase } from './support/database';

const platform: Platform = {
  nameserverSuffix: 'ns.platform.test', edgeSuffix: 'edge.platform.test', soaRname: 'hostmaster.platform.test', allowTestTlds: true,
  servers: [{ addresses: ['192.0.2.1'], port: 53 }, { addresses: ['192.0.2.2'], port: 53 }], gatewayAddresses: { ipv4: [], ipv6: [] }, ports: new Set(), privateOrigins: [],
};
/** Notifications are no part of a start. */
const deaf: Listener = { listen: () => () => undefined, close: () => Promise.resolve() };
const zones = 1_000;
const records = 100;
const rounds = Number(process.env['ROUNDS'] ?? 5);
const targetMs = 3_000;

async function main(): Promise<void> {
  await withBenchDatabase(async (database) => {
    await fill(database);
    const took: number[] = [];
    for (let round = 0; round < rounds; round++) took.push(await startOnce(database));
    print(`start with ${zones.toLocaleString('en')} zones of ${records} records until bound: median ${Math.round(percentile(took, 0.5))} ms, worst ${Math.round(Math.max(...took))} ms (target ${targetMs} ms)`);
  });
}

async function startOnce(database: Database): Promise<number> {
  const log = createLog('dns-load', 'warn');
  const startedMs = performance.now();
  const feed = new DatabaseFeed({ db: database, listener: deaf, platform, serverId: 'bench', addresses: [], pollMs: 60_000, log });
  const server = await startDnsServer({
    listen: [{ host: '127.0.0.1', port: 0 }], feed, rateLimit: { perSecond: 0, exempt: [] }, transfer: { keys: [], allow: [] }, notify: [], nowMs: Date.now, log,
  });
  const tookMs = performance.now() - startedMs;
  if (server.versions().length !== zones + 2) throw new Error(`${server.versions().length} zones were loaded`);
  await server.close();
  return tookMs;
}

async function fill({ pool }: Database): Promise<void> {
  const [org, project] = [newId('org'), newId('prj')];
  const ids = Array.from({ length: zones }, () => newId('zone'));
  const domains = ids.map((_, i) => `z${i}.bench.test`);
  await pool.query(`insert into organization (id, name, slug) values ($1, 'bench', 'bench')`, [org]);
  await pool.query(`insert into project (id, org_id, slug, display_name) values ($1, $2, 'bench', 'bench')`, [project, org]);
  await pool.query('insert into dns_nameserver_assignment (project_id, domain, token, verify_token) select $1, d, md5(d), md5(d) from unnest($2::text[]) d', [project, domains]);
  await pool.query(`insert into dns_zone (id, org_id, project_id, domain, unicode_domain, registrable, mode, served, serial, record_count)
    select z.id, $1, $2, z.domain, z.domain, 'bench.test', 'full_hosting', true, 2026112100, $5::int from unnest($3::text[], $4::text[]) as z (id, domain)`, [org, project, ids, domains, records]);
  await pool.query(`insert into dns_record (id, zone_id, type, name, value, ttl, rdata_hash, version)
    select 'rec_' || md5(z || i), z, 'A', 'n' || i, '192.0.2.' || i, 300, sha256((z || i)::bytea), 1 from unnest($1::text[]) z, generate_series(1, $2::int) i`, [ids, records]);
  await pool.query('analyze');
}

void main();

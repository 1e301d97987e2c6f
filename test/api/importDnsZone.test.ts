import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inTransaction } from '../../src/db/transaction';
import { ensureManagedRecords } from '../../src/dns/service';
import type { RecordView } from '../../src/dns/schemas';
import type { Tenant } from '../support/tenant';
import { withDnsWorld } from '../support/dns-world';

const world = withDnsWorld(47);
const exported = async (zoneId: string, tenant = world.tenant): Promise<string> => (await world.ask('GET', `/dns/zones/${zoneId}/export`, { tenant })).body.zoneFile;
const bring = (zoneId: string, json: object, tenant: Tenant = world.tenant, headers = {}) => world.ask('POST', `/dns/zones/${zoneId}/import`, { tenant, json, headers });
const records = async (zoneId: string, tenant = world.tenant): Promise<RecordView[]> => (await world.ask('GET', `/dns/zones/${zoneId}/records`, { tenant })).body.records;
const comparable = (list: readonly RecordView[]): string[] => list.map(({ type, name, value, ttl, priority, proxied, originProtocol, originPort, originPath, originHostHeader, comment }) =>
  JSON.stringify({ type, name, value, ttl, priority, proxied, originProtocol, originPort, originPath, originHostHeader, comment })).sort();
const add = async (zoneId: string, list: object[]) => {
  const answer = await world.ask('POST', `/dns/zones/${zoneId}/records/batch`, { json: { creates: list } });
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};

const everyKind = [
  { type: 'CNAME', name: '@', value: 'apex.example.net', proxied: true, originProtocol: 'https', originPath: '/a b' },
  { type: 'A', name: 'www', value: '8.8.8.8', proxied: true, originPort: 8443, comment: 'two; "lines"\n(here)' }, { type: 'AAAA', name: 'www', value: '2606:4700::1' },
  { type: 'MX', name: 'm', value: 'mail.example.net', priority: 0, ttl: 86_400 }, { type: 'MX', name: 'none', value: '.', priority: 0 },
  { type: 'TXT', name: 't', value: 'é"\\;' + 'x'.repeat(600) }, { type: 'TXT', name: 't', value: '"\\"already quoted\\""' }, { type: 'TXT', name: 't', value: '' },
  { type: 'NS', name: 'sub', value: 'ns1.sub.zonefile.test' }, { type: 'A', name: 'ns1.sub', value: '192.0.2.53' }, { type: 'CAA', name: '@', value: '0 issue "ca.example; account=1"' },
  { type: 'CNAME', name: '*.w', value: '_x.example.net' }, { type: 'TXT', name: '_dmarc', value: 'v=DMARC1; p=none', ttl: 60 },
];

test('exportDnsZone: what is exported is imported as an identical zone, and named-checkzone loads it', async () => {
  const zone = await world.zone('zonefile.test');
  await add(zone.id, everyKind);
  const file = await exported(zone.id);
  const other = await world.newTenant();
  const copy = await world.zone('zonefile.test', other);
  const { body } = await bring(copy.id, { zoneFile: file, strategy: 'replace' }, other);
  expect(body.skipped.map(({ reason }: { reason: string }) => reason)).toEqual(['SOA of the apex is set by the platform', 'NS of the apex is set by the platform', 'NS of the apex is set by the platform']);
  expect(comparable(await records(copy.id, other))).toEqual(comparable(await records(zone.id)));
  expect((await records(copy.id, other)).length).toBe(everyKind.length);
  const again = (await bring(copy.id, { zoneFile: file, strategy: 'replace' }, other)).body;
  expect(again).toMatchObject({ created: [], updated: [], deletedIds: [], publication: { version: body.publication.version } });
  if (spawnSync('named-checkzone', ['-v']).status !== 0) return;
  const folder = mkdtempSync(join(tmpdir(), 'export-'));
  writeFileSync(join(folder, 'zone'), file);
  expect(spawnSync('named-checkzone', ['-i', 'local', 'zonefile.test', join(folder, 'zone')]).stdout.toString()).toMatch(/\nOK\n$/);
  rmSync(folder, { recursive: true });
});

test('merge leaves what the file does not name, replace deletes it; what cannot be taken is skipped with its line', async () => {
  const zone = await world.zone('merge.test');
  const { created: [kept, changed] } = await add(zone.id, [{ type: 'A', name: 'kept', value: '192.0.2.1' }, { type: 'A', name: 'www', value: '192.0.2.2', comment: 'stays', ttl: 300 }]);
  const zoneFile = ['$TTL 1h', 'www A 192.0.2.2', '    A ( 192.0.2.3 )', 'www.merge.test. A 192.0.2.3', 'srv SRV 1 2 3 a.b.', '$ORIGIN sub.merge.test.', 'x 60 CNAME @'].join('\n');
  const merged = (await bring(zone.id, { zoneFile, strategy: 'merge' })).body;
  expect(merged).toMatchObject({
    created: [{ name: 'www', value: '192.0.2.3', ttl: 3600 }, { name: 'x.sub', type: 'CNAME', value: 'sub.merge.test', ttl: 60 }], updated: [{ id: changed.id, ttl: 3600, comment: 'stays' }], deletedIds: [],
    skipped: [{ line: 4, reason: 'is given twice' }, { line: 5, reason: 'type SRV is not supported' }], warnings: expect.any(Array),
  });
  const replaced = (await bring(zone.id, { zoneFile: 'new A 192.0.2.9', strategy: 'replace', dryRun: true })).body;
  expect(replaced).toMatchObject({ created: [{ name: 'new' }], dryRun: true });
  expect(new Set(replaced.deletedIds)).toEqual(new Set([kept.id, changed.id, ...merged.created.map(({ id }: RecordView) => id)]));
  expect((await records(zone.id)).length).toBe(4);
  await bring(zone.id, { zoneFile: 'new A 192.0.2.9', strategy: 'replace' });
  expect((await records(zone.id)).map(({ name }) => name)).toEqual(['new']);
});

test('records that a product keeps are exported and never changed', async () => {
  const zone = await world.zone('kept.test');
  await inTransaction(world.api.deps.db, (tx) => ensureManagedRecords(tx, world.api.deps, { zoneId: zone.id, owner: 'mail', ownerId: 'dom_1', records: [{ type: 'TXT', name: 'k._domainkey', value: 'v=DKIM1', ttl: 300 }] }));
  expect(await exported(zone.id)).toContain('k._domainkey 300 IN TXT "v=DKIM1"\n');
  expect((await bring(zone.id, { zoneFile: 'k._domainkey 900 TXT v=DKIM1\nwww A 192.0.2.1', strategy: 'replace' })).body).toMatchObject({
    created: [{ name: 'www' }], updated: [], deletedIds: [], skipped: [{ line: 1, reason: 'is kept by mail' }],
  });
  expect((await records(zone.id)).find(({ managed }) => managed)).toMatchObject({ ttl: 300, managed: 'mail' });
});

test('a conflict, a stale If-Match, too many records or too large a file refuse the whole', async () => {
  const zone = await world.zone('refused.test');
  const { created: [there] } = await add(zone.id, [{ type: 'A', name: 'www', value: '192.0.2.1' }]);
  const refused = async (zoneFile: string, headers = {}) => (await bring(zone.id, { zoneFile, strategy: 'merge' }, world.tenant, headers)).body;
  expect(await refused('a A 192.0.2.1\nwww CNAME x.example.net.')).toMatchObject({ code: 'cname_conflict', conflicts: [there.id] });
  expect(await refused('a A 192.0.2.1', { 'if-match': '"1"' })).toMatchObject({ code: 'precondition_failed' });
  expect(await refused(Array.from({ length: 300 }, (_, i) => `h${i} A 192.0.2.1`).join('\n'))).toMatchObject({ code: 'quota_exceeded', limit: 200 });
  expect(await refused(`; ${'"'.repeat(200 * 1024)}`)).toMatchObject({ code: 'validation_error', issues: [{ path: 'zoneFile' }] });
  expect((await records(zone.id)).length).toBe(1);
});

test('a file that is too much for one name is refused as fast as it is read', async () => {
  const zone = await world.zone('large.test');
  const lines = Array.from({ length: 10_000 }, (_, i) => `@ A 10.0.${i >> 8}.${i & 255}`);
  expect((await bring(zone.id, { zoneFile: lines.join('\n').slice(0, 200 * 1024), strategy: 'merge' })).body).toMatchObject({ code: 'rrset_too_large' });
});

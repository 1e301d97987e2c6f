import { newId } from '../../src/core/ids';
import { withDnsWorld } from '../support/dns-world';
import { foreignServer, mailCalls, zoneLines } from '../support/mail-world';

const world = withDnsWorld(51);
const { service, domain: add, shown, verify } = mailCalls(world);
const query = async (sql: string, ...values: unknown[]) => (await world.api.deps.db.pool.query(sql, values)).rows;
/** Ten seconds are over for the limit of live checks. */
const later = () => query(`delete from rate_limit where key like 'mail-%'`);
const byPurpose = ({ records }: Awaited<ReturnType<typeof shown>>) => Object.fromEntries(records.map((record) => [record.purpose, record]));

test('addMailDomain answers the four records to set, pending, with the operation that verifies it', async () => {
  const serviceId = await service();
  const { status, body } = await world.ask('POST', `/mail/services/${serviceId}/domains`, { json: { domain: 'ACME.test.', returnPath: 'Mail' } });
  expect(status).toBe(200);
  const { domain, operation } = body;
  expect(domain).toMatchObject({
    id: expect.stringMatching(/^dom_/), domainId: domain.id, domain: 'acme.test', mailServiceId: serviceId, status: 'pending', canSend: false, failureReason: null, hostedZoneId: null,
    checkCount: 0, lastCheckedAt: null, verifiedAt: null, degradedAt: null, dmarcPolicy: null,
    records: [
      { purpose: 'ownership', required: true, type: 'TXT', name: '_holdfast.acme.test', value: expect.stringMatching(/^holdfast-verify=[a-z2-7]{32}$/), ttl: 300, status: 'pending', found: [], published: false },
      { purpose: 'dkim', required: true, type: 'TXT', name: expect.stringMatching(/^hf[a-z2-7]{6}\._domainkey\.acme\.test$/), value: expect.stringMatching(/^v=DKIM1; k=rsa; p=MIIB[A-Za-z0-9+/]+=*$/) },
      { purpose: 'return_path', required: false, type: 'CNAME', name: 'mail.acme.test', value: 'bounce.holdfast.test' },
      { purpose: 'dmarc', required: false, type: 'TXT', name: '_dmarc.acme.test', value: 'v=DMARC1; p=none' },
    ],
  });
  expect(Date.parse(domain.verificationDeadline) - Date.parse(domain.createdAt)).toBeGreaterThan(71.99 * 3_600_000);
  expect(operation).toMatchObject({ kind: 'mail.verify_domain', resourceId: domain.id, state: 'pending' });
  expect(await query('select workflow, workflow_id, signal, payload from operation where id = $1', operation.id))
    .toEqual([{ workflow: 'verifyDomain', workflow_id: `mail-verify/${domain.id}`, signal: 'recheck', payload: { domainId: domain.id, operationId: operation.id } }]);
  const [{ private_key: sealed }] = await query('select private_key from mail_domain_key where domain_id = $1', domain.id);
  expect(sealed).toMatch(/^v1\./);
});

test('getMailDomain, listMailDomains: the same domain again is the one there is; in another service of the project it exists; another project may hold it too', async () => {
  const first = await add('twice.test');
  const again = await world.ask('POST', `/mail/services/${first.mailServiceId}/domains`, { json: { name: 'Twice.TEST' } });
  expect(again).toMatchObject({ status: 200, body: { domain: { id: first.id }, operation: null } });
  expect(await world.ask('POST', `/mail/services/${await service()}/domains`, { json: { domain: 'twice.test' } })).toMatchObject({ status: 400, body: { code: 'domain_exists' } });
  const other = await world.newTenant();
  const theirs = await world.ask('POST', `/mail/services/${await service('launch', other)}/domains`, { tenant: other, json: { domain: 'twice.test' } });
  expect(theirs.status).toBe(200);
  expect(theirs.body.domain.records[0].value).not.toBe(first.records[0]?.value);
});

test.each(['gmail.com', 'com', 'co.uk', 'localhost', 'x.local', 'no spaces.test', 'a_b.test', 'bounce.holdfast.test', 'deep.bounce.holdfast.test', 'ns.holdfast.test', '192.0.2.1', 'user@acme.test', 'acme'])(
  '%s is no sender domain', async (domain) => {
    expect(await world.ask('POST', `/mail/services/${await service()}/domains`, { json: { domain } })).toMatchObject({ status: 400, body: { code: 'invalid_domain' } });
  });

test('a body needs one name, and a return path that is one label', async () => {
  const serviceId = await service();
  for (const json of [{}, { domain: 'a.test', name: 'a.test' }, { domain: 'a.test', returnPath: 'a.b' }, { domain: 'a.test', returnPath: '_x' }, { domain: 7 }]) {
    expect({ json, ...await world.ask('POST', `/mail/services/${serviceId}/domains`, { json }) }).toMatchObject({ json, status: 400, body: { code: 'validation_error' } });
  }
});

test('the fourth domain of the plan is refused; a deleted one makes room', async () => {
  const serviceId = await service();
  const one = (name: string) => world.ask('POST', `/mail/services/${serviceId}/domains`, { json: { domain: name } });
  for (const name of ['one.test', 'two.test', 'three.test']) expect((await one(name)).status).toBe(200);
  expect(await one('four.test')).toMatchObject({ status: 402, body: { code: 'plan_limit_reached', resource: 'mail.domains', limit: 3, used: 3, upgradeTo: 'growth' } });
  expect((await world.ask('DELETE', '/mail/domains/two.test')).status).toBe(200);
  expect((await one('four.test')).status).toBe(200);
  expect((await world.ask('GET', `/mail/services/${serviceId}/domains`)).body.domains.map(({ domain }: { domain: string }) => domain)).toEqual(['four.test', 'three.test', 'one.test']);
});

test('in a zone of the project the records stand at once and the domain is verified by asking DNS', async () => {
  const zone = await world.zone('hosted.test');
  world.registry.delegate('hosted.test', zone.nameservers);
  const domain = await add('hosted.test');
  expect(domain.hostedZoneId).toBe(zone.id);
  expect(domain.records.map(({ published }) => published)).toEqual([true, true, true, true]);
  const { body } = await verify('hosted.test');
  expect(body).toMatchObject({ verification: { live: true, durationMs: expect.any(Number), checkedAt: body.domain.lastCheckedAt }, operation: null });
  expect(body.domain).toMatchObject({ status: 'verified', canSend: true, dmarcPolicy: 'none', checkCount: 1, verifiedAt: expect.any(String) });
  expect(body.domain.records.map(({ status }: { status: string }) => status)).toEqual(['ok', 'ok', 'ok', 'ok']);
  expect(await query('select state from operation where resource_id = $1', domain.id)).toEqual([{ state: 'succeeded' }]);
  expect(await query('select type from mail_event where mail_service_id = $1', domain.mailServiceId)).toEqual([{ type: 'domain.verified' }]);
});

test("a user's records in the way stay, and the answer says which of ours are not published", async () => {
  const zone = await world.zone('occupied.test');
  for (const json of [{ type: 'TXT', name: '_dmarc', value: 'v=DMARC1; p=reject' }, { type: 'A', name: 'bounce', value: '192.0.2.1' }]) await world.ask('POST', `/dns/zones/${zone.id}/records`, { json });
  world.registry.delegate('occupied.test', zone.nameservers);
  const domain = await add('occupied.test');
  expect(domain.records.map(({ purpose, published }) => ({ purpose, published }))).toEqual([
    { purpose: 'ownership', published: true }, { purpose: 'dkim', published: true }, { purpose: 'return_path', published: false }, { purpose: 'dmarc', published: false },
  ]);
  const checked = (await verify('occupied.test')).body.domain;
  expect(checked).toMatchObject({ status: 'verified', dmarcPolicy: 'reject' });
  expect(byPurpose(checked)).toMatchObject({ return_path: { status: 'missing' }, dmarc: { status: 'ok', found: ['v=DMARC1; p=reject'] } });
});

test('publishMailDomain writes into a zone that came later, and refuses where none is hosted', async () => {
  const domain = await add('later.test');
  expect(await world.ask('POST', '/mail/domains/later.test/publish')).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
  const zone = await world.zone('later.test');
  const { status, body } = await world.ask('POST', `/mail/domains/${domain.id}/publish`, { json: {} });
  expect({ status, hosted: body.domain.hostedZoneId, published: body.domain.records.every(({ published }: { published: boolean }) => published) }).toEqual({ status: 200, hosted: zone.id, published: true });
});

test('verifyMailDomain tells what is missing and what is there instead; a second look within ten seconds shows the stored one', async () => {
  const server = await foreignServer(world, 'halfway.test');
  const domain = await add('halfway.test');
  server.host('halfway.test', ['_holdfast TXT 300 holdfast-verify=wrong', '_dmarc TXT 300 v=DMARC1;p=Quarantine; rua=mailto:x@halfway.test']);
  const { body } = await verify(domain.id);
  expect(body.domain).toMatchObject({ status: 'pending', dmarcPolicy: 'quarantine', checkCount: 1 });
  expect(byPurpose(body.domain)).toMatchObject({
    ownership: { status: 'mismatch', found: ['holdfast-verify=wrong'] }, dkim: { status: 'missing', found: [] }, return_path: { status: 'missing' }, dmarc: { status: 'ok' },
  });
  expect(body.operation).toMatchObject({ kind: 'mail.verify_domain', state: 'pending' });
  server.host('halfway.test', zoneLines(domain));
  await later();
  const { domain: verified } = (await verify('HALFWAY.test')).body;
  expect(verified).toMatchObject({ status: 'verified', checkCount: 2 });
  expect((await verify(domain.id)).body).toMatchObject({ verification: { live: false, durationMs: null, checkedAt: verified.lastCheckedAt }, domain: verified, operation: null });
});

test('the key in another spelling of its record is the same key', async () => {
  const server = await foreignServer(world, 'spelled.test');
  const domain = await add('spelled.test');
  const dkim = domain.records.find(({ purpose }) => purpose === 'dkim');
  const [, key = ''] = /p=(.*)$/.exec(dkim?.value ?? '') ?? [];
  const spelled = `p=${key.slice(0, 60)} ${key.slice(60)} ; n=hello;v=DKIM1`;
  server.host('spelled.test', [...zoneLines(domain, ({ purpose }) => purpose === 'ownership'), `${dkim?.name.replace('.spelled.test', '')} TXT 300 ${spelled}`]);
  expect((await verify('spelled.test')).body.domain).toMatchObject({ status: 'verified', dmarcPolicy: null });
});

test('names that do not resolve say nothing: the domain stays as it is and the next check is in a quarter of an hour', async () => {
  const domain = await add('dark.test');
  world.registry.delegate('dark.test', ['ns1.dark.test'], { glue: { 'ns1.dark.test': ['127.0.51.250'] } });
  const { body } = await verify('dark.test');
  expect(body.domain).toMatchObject({ status: 'pending', checkCount: 1 });
  expect(body.domain.records.map(({ status }: { status: string }) => status)).toEqual(['unknown', 'unknown', 'unknown', 'unknown']);
  expect(Date.parse(body.domain.nextCheckAt) - Date.parse(body.domain.lastCheckedAt)).toBe(15 * 60_000);
  expect(domain.id).toBe(body.domain.id);
}, 20_000);

test('POST verify takes nothing away from a verified domain; a failed one gets a new window with the same records', async () => {
  const server = await foreignServer(world, 'lost.test');
  const domain = await add('lost.test');
  server.host('lost.test', zoneLines(domain));
  await verify('lost.test');
  server.host('lost.test', []);
  await later();
  expect((await verify('lost.test')).body.domain).toMatchObject({ status: 'verified', canSend: true });
  await query(`update mail_domain set status = 'failed', failure_reason = 'records_lost', next_check_at = null, misses = 3 where id = $1`, domain.id);
  await later();
  const { body } = await verify('lost.test');
  expect(body).toMatchObject({ domain: { status: 'pending', failureReason: null, canSend: false }, operation: { state: 'pending' } });
  expect(body.domain.records.map(({ value }: { value: string }) => value)).toEqual(domain.records.map(({ value }) => value));
  expect(Date.parse(body.domain.verificationDeadline)).toBeGreaterThan(Date.parse(domain.verificationDeadline));
});

test('rotateMailDkim: a second record; seen, its key signs and the old record is listed seven days more', async () => {
  const zone = await world.zone('turning.test');
  world.registry.delegate('turning.test', zone.nameservers);
  const domain = await add('turning.test');
  await verify('turning.test');
  const { status, body } = await world.ask('POST', '/mail/domains/turning.test/rotate-dkim');
  const keys = body.domain.records.filter(({ purpose }: { purpose: string }) => purpose === 'dkim');
  expect({ status, published: keys.map(({ published }: { published: boolean }) => published), first: keys[0].name }).toEqual({ status: 200, published: [true, true], first: domain.records[1]?.name });
  expect((await world.ask('POST', '/mail/domains/turning.test/rotate-dkim')).status).toBe(429);
  await later();
  const seen = (await verify('turning.test')).body.domain;
  expect(seen.status).toBe('verified');
  const [current, former] = await query('select selector, state, listed_until from mail_domain_key where domain_id = $1 order by state', domain.id);
  expect([current, former]).toMatchObject([{ state: 'current', selector: keys[1].name.split('.')[0] }, { state: 'former', selector: keys[0].name.split('.')[0] }]);
  expect((former.listed_until.getTime() - Date.now()) / 86_400_000).toBeCloseTo(7, 1);
  expect(seen.records.filter(({ purpose }: { purpose: string }) => purpose === 'dkim').map(({ required }: { required: boolean }) => required)).toEqual([true, false]);
  await query(`update mail_domain_key set listed_until = now() - interval '1 second' where domain_id = $1 and state = 'former'`, domain.id);
  await later();
  const after = (await verify('turning.test')).body.domain;
  expect(after.records.filter(({ purpose }: { purpose: string }) => purpose === 'dkim')).toMatchObject([{ name: keys[1].name, published: true }]);
  expect((await world.ask('GET', `/dns/zones/${zone.id}/records?managed=true`)).body.records).toHaveLength(4);
});

test('the zone deleted, the domain is hosted nowhere and none of its records is published', async () => {
  const zone = await world.zone('coming.test');
  const domain = await add('coming.test');
  expect([domain.hostedZoneId, domain.records.every(({ published }) => published)]).toEqual([zone.id, true]);
  expect((await world.ask('DELETE', `/dns/zones/${zone.id}`)).status).toBe(200);
  const gone = await shown('coming.test');
  expect([gone.hostedZoneId, gone.records.some(({ published }) => published)]).toEqual([null, false]);
});

test('deleteMailDomain by name: gone with its records, and again 404', async () => {
  const zone = await world.zone('ended.test');
  const domain = await add('ended.test');
  expect((await world.ask('DELETE', '/mail/domains/ended.test', { as: 'member' })).status).toBe(403);
  expect((await world.ask('DELETE', '/mail/domains/Ended.Test')).body).toMatchObject({ deleted: true, domainId: domain.id, domain: { id: domain.id } });
  expect((await world.ask('GET', `/dns/zones/${zone.id}/records?managed=true`)).body.records).toEqual([]);
  expect(await query('select state from operation where resource_id = $1', domain.id)).toEqual([{ state: 'cancelled' }]);
  for (const ref of [domain.id, 'ended.test']) expect((await world.ask('DELETE', `/mail/domains/${ref}`)).status).toBe(404);
});

test('a domain of another project answers like one that never existed, by id and by name', async () => {
  const domain = await add('private.test');
  const other = await world.newTenant();
  for (const [method, path] of [['GET', ''], ['POST', '/verify'], ['POST', '/publish'], ['POST', '/rotate-dkim'], ['DELETE', '']] as const) {
    for (const [theirs, nobodys] of [[domain.id, newId('dom')], ['private.test', 'nobody.test'], ['private.test', 'not a name']]) {
      const [a, b] = await Promise.all([theirs, nobodys].map((ref) => world.ask(method, `/mail/domains/${encodeURIComponent(ref ?? '')}${path}`, { tenant: other })));
      expect({ method, path, status: a?.status, body: { ...a?.body, requestId: '' } }).toEqual({ method, path, status: 404, body: { ...b?.body, requestId: '' } });
    }
  }
  expect((await shown(domain.id)).checkCount).toBe(0);
});

import { newId, timeOfId } from '../../src/core/ids';
import { gatewayOperations } from '../../src/gateway/operations';
import type { PolicyView } from '../../src/gateway/schemas';
import { ensureZoneCertificates } from '../../src/gateway/service';
import { withGatewayApi } from '../support/gateway-api';

const world = withGatewayApi();
const leaf = (value: string) => ({ field: 'path', op: 'starts_with', value });
const matching = (value: string) => ({ field: 'path', op: 'matches', value });

test('getGatewayPolicy answers the default for a zone that was never written, with the times of the zone', async () => {
  const zone = await world.zone();
  const answer = await world.gateway(zone, 'GET');
  const { body: { zone: shown } } = await world.ask('GET', `/dns/zones/${zone.id}`);
  expect(answer).toMatchObject({ status: 200, headers: { etag: '"0"' } });
  expect(answer.body.policy).toEqual({
    id: zone.id, zoneId: zone.id, version: 0, mode: 'monitor', onEngineError: 'open',
    managedRules: {
      enabled: true, ruleSet: 'base', paranoiaLevel: 1, detectionParanoiaLevel: 1, inboundThreshold: 5, outboundThreshold: 4, inspectResponse: false, maxBodyBytes: 131_072,
      bodyLimitAction: 'partial', disabledRules: [], logOnlyRules: [], exclusions: [],
    },
    customRules: [], rateLimits: [], ipLists: { allow: [], deny: [] }, geo: { mode: 'off', countries: [], denyAsns: [] },
    bots: { mode: 'off', allowVerified: true, blockEmptyUserAgent: false, blockKnownScanners: true }, challenge: { type: 'pow', difficulty: 16, validSeconds: 3_600 },
    transport: { httpsRedirect: false, minTlsVersion: '1.2', hsts: { enabled: false, maxAgeSeconds: 15_552_000, includeSubDomains: false, preload: false } },
    updatedBy: null, createdAt: shown.createdAt, updatedAt: shown.updatedAt,
  });
});

test('a policy is replaced as a whole, read back, edited and put again; equal content makes no version', async () => {
  const zone = await world.zone();
  const first = await world.put(zone, { mode: 'block', customRules: [{ id: 'admin', name: 'Office only', match: { all: [leaf('/admin'), { not: { field: 'ip', op: 'in', value: ['198.51.100.0/24'] } }] } }], ipLists: { deny: ['192.0.2.0/24'] } });
  expect(first).toMatchObject({ status: 200, headers: { etag: '"1"' }, body: { policy: { version: 1, mode: 'block', updatedBy: world.tenant.userIds.owner }, propagation: { version: 1, instances: 0, applied: 0, appliedAt: null, ms: null }, warnings: [] } });
  expect(first.body.policy.customRules).toEqual([{
    id: 'admin', name: 'Office only', enabled: true, match: { all: [leaf('/admin'), { not: { field: 'ip', op: 'in', value: ['198.51.100.0/24'] } }] }, action: 'block', status: 403, skip: [],
  }]);
  const read: PolicyView = (await world.gateway(zone, 'GET')).body.policy;
  expect(read).toEqual(first.body.policy);
  expect((await world.put(zone, read)).body.policy).toEqual(read);
  const edited = await world.put(zone, { ...read, bots: { ...read.bots, mode: 'monitor' } });
  expect(edited.body.policy).toEqual({ ...read, version: 2, bots: { ...read.bots, mode: 'monitor' }, updatedAt: expect.any(String) });
  expect((await world.put(zone, { mode: 'off' })).body.policy).toMatchObject({ version: 3, customRules: [], ipLists: { deny: [] } });
  expect((await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone.gatewayMode).toBe('off');
  expect(await world.sql(`select action, target_id from audit_entry where target_id = $1 and action = 'putGatewayPolicy'`, zone.id)).toHaveLength(3);
});

test('an entry without an id gets the same one again, wherever it stands', async () => {
  const zone = await world.zone();
  const [a, b] = [{ match: leaf('/a') }, { match: leaf('/b') }];
  const ids = (policy: PolicyView) => policy.customRules.map(({ id }) => id);
  const first = ids((await world.put(zone, { mode: 'block', customRules: [a, b, a] })).body.policy);
  expect(new Set(first).size).toBe(3);
  for (const id of first) expect(id).toMatch(/^[a-z0-9][a-z0-9_-]{0,63}$/);
  expect((await world.put(zone, { mode: 'block', customRules: [a, b, a] })).body.policy.version).toBe(1);
  expect(ids((await world.put(zone, { mode: 'block', customRules: [b, a] })).body.policy)).toEqual([first[1], first[0]]);
});

test('If-Match names the version that was read; without it the last writer wins', async () => {
  const zone = await world.zone();
  expect((await world.put(zone, { mode: 'block' }, { headers: { 'if-match': '"0"' } })).body.policy.version).toBe(1);
  expect((await world.put(zone, { mode: 'off' }, { headers: { 'if-match': '"0"' } })).body).toMatchObject({ code: 'precondition_failed', ok: false });
  expect((await world.put(zone, { mode: 'monitor' }, { headers: { 'if-match': '"1"' } })).body.policy.version).toBe(2);
  const racing = await Promise.all(Array.from({ length: 8 }, (_, i) => world.put(zone, { mode: 'block', challenge: { difficulty: 8 + i } })));
  expect(racing.map(({ status }) => status)).toEqual(Array(8).fill(200));
  expect(racing.map(({ body }) => body.policy.version).toSorted((a, b) => a - b)).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
  const guarded = await Promise.all(Array.from({ length: 8 }, (_, i) => world.put(zone, { mode: 'off', challenge: { difficulty: 8 + i } }, { headers: { 'if-match': '"10"' } })));
  expect(guarded.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(new Set(guarded.filter(({ status }) => status !== 200).map(({ body }) => body.code))).toEqual(new Set(['precondition_failed']));
});

test('a dry run stores nothing and tells what would change', async () => {
  const zone = await world.zone();
  await world.put(zone, { mode: 'block', customRules: [{ id: 'a', match: leaf('/a') }], ipLists: { deny: ['192.0.2.0/24', '198.51.100.1'] } });
  const { body } = await world.put(zone, { mode: 'block', customRules: [{ id: 'a', match: leaf('/a'), action: 'log' }, { id: 'b', match: leaf('/b') }], ipLists: { deny: ['192.0.2.0/24'] } }, { query: '?dryRun=true' });
  expect(body.propagation).toBeUndefined();
  expect(body.changes).toEqual([
    { path: 'customRules.a.action', from: 'block', to: 'log' }, { path: 'customRules.a.status', from: 403, to: null }, { path: 'customRules.b', from: null, to: expect.objectContaining({ id: 'b' }) },
    { path: 'ipLists.deny', from: ['198.51.100.1/32'], to: [] },
  ]);
  expect(body.policy.customRules).toHaveLength(2);
  expect((await world.policy(zone)).version).toBe(1);
  expect((await world.put(zone, { mode: 'monitor', customRules: [{ match: matching('(a)\\1') }] }, { query: '?dryRun=true' })).body.code).toBe('unsafe_regex');
});

test('addresses become canonical with a warning for host bits, and lists lose their repetitions', async () => {
  const zone = await world.zone();
  const { body: { policy, warnings } } = await world.put(zone, {
    mode: 'monitor', ipLists: { allow: ['203.0.113.7', '203.0.113.7/32', '2001:DB8:0:0::1/64', '::ffff:198.51.100.9'], deny: ['192.0.2.77/24', '203.0.113.7'] },
    customRules: [{ match: { field: 'ip', op: 'in', value: ['198.51.100.77/24', '2001:DB8::1'] } }],
  });
  expect(policy.ipLists).toEqual({ allow: ['203.0.113.7/32', '2001:db8::/64', '198.51.100.9/32'], deny: ['192.0.2.0/24', '203.0.113.7/32'] });
  expect(policy.customRules[0].match).toEqual({ field: 'ip', op: 'in', value: ['198.51.100.0/24', '2001:db8::1'] });
  expect(warnings.map(({ code, path }: { code: string; path: string }) => `${code} ${path}`)).toEqual([
    'masked_host_bits customRules.0.match.value.0', 'masked_host_bits ipLists.allow.2', 'masked_host_bits ipLists.deny.0', 'deny_shadowed_by_allow ipLists.deny.1',
  ]);
  expect((await world.put(zone, policy)).body.policy.version).toBe(1);
});

test('warnings say what is probably not meant', async () => {
  const zone = await world.zone({ proxied: false });
  const { body: { warnings } } = await world.put(zone, {
    mode: 'block', managedRules: { disabledRules: ['1234567890'] }, ipLists: { deny: ['127.0.0.0/8', '::1/128'] }, geo: { mode: 'deny', countries: ['at'] },
    rateLimits: [{ key: ['ip', 'asn'] }],
  });
  expect(warnings.map(({ code, path }: { code: string; path: string }) => [code, path])).toEqual(expect.arrayContaining([
    ['would_block_you', expect.stringMatching(/^ipLists\.deny\.[01]$/)], ['unknown_rule', 'managedRules.disabledRules.0'], ['geo_database_missing', 'geo.mode'], ['geo_database_missing', 'rateLimits.0.key.1'], ['no_proxied_names', ''],
  ]));
  expect((await world.put(zone, { mode: 'block', ipLists: { allow: ['127.0.0.1'], deny: ['127.0.0.0/8'] } })).body.warnings.map(({ code }: { code: string }) => code)).not.toContain('would_block_you');
  expect((await world.put(zone, { mode: 'block', customRules: [{ match: { any: [leaf('/x'), { field: 'ip', op: 'ne', value: '192.0.2.1' }] } }] })).body.warnings[0]).toMatchObject({ code: 'would_block_you', path: 'customRules.0' });
});

const faults: [string, object, string][] = [
  ['an unknown key', { mode: 'block', ruels: [] }, 'ruels'],
  ['no mode', { customRules: [] }, 'mode'],
  ['two conditions in one', { mode: 'block', customRules: [{ match: { all: [leaf('/')], not: leaf('/') } }] }, 'customRules.0.match'],
  ['an operator of another type', { mode: 'block', customRules: [{ match: { field: 'asn', op: 'contains', value: '1' } }] }, 'customRules.0.match.op'],
  ['a header without its name', { mode: 'block', customRules: [{ match: { field: 'header', op: 'exists' } }] }, 'customRules.0.match.key'],
  ['conditions six deep', { mode: 'block', customRules: [{ match: { not: { not: { not: { not: { not: leaf('/') } } } } } }] }, 'customRules.0.match.not.not.not.not.not'],
  ['65 comparisons', { mode: 'block', customRules: [{ match: { all: [{ any: Array.from({ length: 40 }, () => leaf('/')) }, { any: Array.from({ length: 25 }, () => leaf('/')) }] } }] }, 'customRules.0.match'],
  ['ids that stand twice', { mode: 'block', rateLimits: [{ id: 'a' }, { id: 'a' }] }, 'rateLimits.1.id'],
  ['an id in capitals', { mode: 'block', rateLimits: [{ id: 'A' }] }, 'rateLimits.0.id'],
  ['a pattern of 513 characters', { mode: 'block', customRules: [{ match: matching('a'.repeat(513)) }] }, 'customRules.0.match.value'],
  ['detection below blocking', { mode: 'block', managedRules: { paranoiaLevel: 3, detectionParanoiaLevel: 2 } }, 'managedRules.detectionParanoiaLevel'],
  ['a threshold of 0', { mode: 'block', managedRules: { inboundThreshold: 0 } }, 'managedRules.inboundThreshold'],
  ['a body of 2 MiB', { mode: 'block', managedRules: { maxBodyBytes: 2_097_152 } }, 'managedRules.maxBodyBytes'],
  ['rule and tag', { mode: 'block', managedRules: { exclusions: [{ ruleId: '1', tag: 'x', target: '*' }] } }, 'managedRules.exclusions.0.ruleId'],
  ['a target that is none', { mode: 'block', managedRules: { exclusions: [{ ruleId: '1', target: 'ARGS_NAMES:x' }] } }, 'managedRules.exclusions.0.target'],
  ['a status for a rule that logs', { mode: 'block', customRules: [{ match: leaf('/'), action: 'log', status: 403 }] }, 'customRules.0.status'],
  ['a status out of line', { mode: 'block', customRules: [{ match: leaf('/'), status: 500 }] }, 'customRules.0.status'],
  ['skipping nothing', { mode: 'block', customRules: [{ match: leaf('/'), action: 'skip' }] }, 'customRules.0.skip'],
  ['four keys', { mode: 'block', rateLimits: [{ key: ['ip', 'host', 'path', 'asn'] }] }, 'rateLimits.0.key'],
  ['a period of two days', { mode: 'block', rateLimits: [{ periodSeconds: 172_800 }] }, 'rateLimits.0.periodSeconds'],
  ['no address', { mode: 'block', ipLists: { deny: ['10.0.0.256'] } }, 'ipLists.deny.0'],
  ['only the countries of nowhere', { mode: 'block', geo: { mode: 'allow' } }, 'geo.countries'],
  ['a country that is none', { mode: 'block', geo: { mode: 'deny', countries: ['XX'] } }, 'geo.countries.0'],
  ['23 bits of work', { mode: 'block', challenge: { difficulty: 23 } }, 'challenge.difficulty'],
  ['preloading for a day', { mode: 'block', transport: { hsts: { enabled: true, preload: true, includeSubDomains: true, maxAgeSeconds: 86_400 } } }, 'transport.hsts.preload'],
];

test.each(faults)('%s is refused, and the place is named', async (_, policy, path) => {
  const zone = await world.zone({ proxied: false });
  const { status, body } = await world.put(zone, policy);
  expect({ status, code: body.code, paths: body.issues?.map((issue: { path: string }) => issue.path) }).toEqual({ status: 400, code: 'validation_error', paths: [path] });
});

test('a condition that is too deep is told so', async () => {
  const { body } = await world.put(await world.zone({ proxied: false }), { mode: 'block', customRules: [{ match: { not: { not: { not: { not: { not: leaf('/') } } } } } }] });
  expect(body.issues).toEqual([{ path: 'customRules.0.match.not.not.not.not.not', message: 'conditions are nested at most 5 deep' }]);
});

test('patterns that could hold the gateway are refused, whatever hides them', async () => {
  const zone = await world.zone();
  for (const pattern of ['(a+)+\\1', '(?=a+)b', '(?<!a)b', '(a{0,100}){0,100}b']) {
    const { body } = await world.put(zone, { mode: 'block', customRules: [{ match: { not: matching(pattern) } }] });
    expect({ pattern, code: body.code, path: body.issues?.[0]?.path }).toEqual({ pattern, code: 'unsafe_regex', path: 'customRules.0.match.not.value' });
  }
  const linear = await world.put(zone, { mode: 'block', customRules: [{ match: { ...matching('^/(a+)+$'), ignoreCase: true } }] });
  expect(linear).toMatchObject({ status: 402, body: { code: 'quota_exceeded', resource: 'gateway.matches_leaves', limit: 0, used: 1, upgradeTo: 'launch' } });
});

test('checks come in their order: absent, suspended, precondition, pattern, plan', async () => {
  const zone = await world.zone();
  const hostile = { mode: 'block', customRules: Array.from({ length: 21 }, (_, i) => ({ match: matching(i === 0 ? '(a)\\1' : 'a') })) };
  const stale = { headers: { 'if-match': '"9"' } };
  expect((await world.put({ id: 'zone_00000000000000000000000000' }, hostile, stale)).body.code).toBe('not_found');
  await world.sql(`update dns_zone set suspended_at = now(), suspended_reason = 'operator' where id = $1`, zone.id);
  expect((await world.put(zone, hostile, stale)).body).toMatchObject({ code: 'service_suspended' });
  await world.sql('update dns_zone set suspended_at = null, suspended_reason = null where id = $1', zone.id);
  expect((await world.put(zone, hostile, stale)).body.code).toBe('precondition_failed');
  expect((await world.put(zone, hostile)).body.code).toBe('unsafe_regex');
  const tooMany = { mode: 'block', customRules: Array.from({ length: 21 }, () => ({ match: leaf('/') })) };
  expect(await world.put(zone, tooMany)).toMatchObject({ status: 402, body: { code: 'quota_exceeded', resource: 'gateway.custom_rules', limit: expect.any(Number), used: 21, upgradeTo: expect.any(String) } });
  expect((await world.put(zone, { mode: 'block', managedRules: { ruleSet: 'crs' } })).body.code).toBe('rule_set_unavailable');
  expect((await world.policy(zone)).version).toBe(0);
});

test('the answer waits until every live worker judges by the version, and no longer than a second', async () => {
  const zone = await world.zone();
  const [quick, slow] = [await world.instance(), await world.instance()];
  const gone = await world.instance();
  await world.sql(`update gateway_instance set heartbeat_at = now() - interval '1 minute' where id = $1`, gone);
  const ack = (instance: string, version: number) => world.sql(`insert into gateway_ack (instance_id, zone_id, policy_version) values ($1, $2, $3)
    on conflict (instance_id, zone_id) do update set policy_version = excluded.policy_version, at = now()`, instance, zone.id, version);
  const stop = world.api.deps.listener.listen('gateway_policy', (payload) => {
    const [id, version] = payload?.split(':') ?? [];
    if (id !== zone.id) return;
    void ack(quick, Number(version));
    if (version === '1') void ack(slow, 1);
  });
  try {
    expect((await world.put(zone, { mode: 'block' })).body.propagation).toEqual({ version: 1, instances: 2, applied: 2, appliedAt: expect.any(String), ms: expect.any(Number) });
    expect((await world.put(zone, { mode: 'off' })).body.propagation).toEqual({ version: 2, instances: 2, applied: 1, appliedAt: null, ms: null });
    await ack(slow, 2);
    await ack(slow, 1);
    expect(await world.sql('select policy_version as version from gateway_ack where instance_id = $1', slow)).toEqual([{ version: 2 }]);
  } finally {
    stop();
    await world.sql('delete from gateway_instance');
  }
});

test('thirty writes a minute are taken for a zone', async () => {
  const zone = await world.zone();
  const answers = await Promise.all(Array.from({ length: 33 }, () => world.put(zone, { mode: 'block' }, { query: '?dryRun=true' })));
  const refused = answers.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThanOrEqual(1);
  expect(answers.length - refused.length).toBeGreaterThanOrEqual(30);
  expect(refused[0]?.headers['retry-after']).toMatch(/^\d+$/);
});

test('who may only read changes nothing', async () => {
  const zone = await world.zone();
  expect((await world.gateway(zone, 'PUT', '', { as: 'member', json: { mode: 'off' } })).body).toMatchObject({ code: 'forbidden', required: 'dns:policy' });
  expect((await world.gateway(zone, 'GET', '', { as: 'viewer' })).status).toBe(200);
});

test('every id of one tenant, on every route of another, is as if it had never been', async () => {
  const theirs = await world.zone();
  await world.put(theirs, { mode: 'block' });
  await ensureZoneCertificates(world.api.deps, theirs.id);
  const { certificates: [{ id: certificateId }] } = (await world.gateway(theirs, 'GET', '/certificates')).body;
  await world.sql(`update gateway_certificate set status = 'failed' where id = $1`, certificateId);
  const eventId = newId('gwe');
  await world.sql(`insert into gateway_event (retention_days, created_at, id, zone_id, updated_at, action, mode, policy_version, source, ip, request_id, method, scheme, host, path, http_version, status, duration_ms, bytes_in, suggested_exclusion)
    values (7, $1, $2, $3, $1, 'block', 'block', 1, 'managed', '192.0.2.1', 'req_x', 'GET', 'http', 'a.test', '/', '1.1', 403, 1, 0, '{"ruleId":"1","target":"*","pathPrefix":null}')`, timeOfId(eventId), eventId, theirs.id);
  const tenant = world.api.foreign;
  const own = await world.zone({ tenant });
  const absent = { zone: newId('zone'), event: newId('gwe'), certificate: newId('crt') };
  const bodies: Record<string, unknown> = { putGatewayPolicy: { mode: 'off' }, evaluateGatewayRequest: { request: { method: 'GET', url: 'http://a.test/', ip: '192.0.2.1' } } };
  const routes = gatewayOperations.map(({ id, method, path }) => ({ id, method: method.toUpperCase(), path: path.split('/security-gateway')[1] ?? '', json: bodies[id] }));
  expect(routes).toHaveLength(14);
  for (const { id, method, path, json } of routes) {
    const filled = (ids: { event: string; certificate: string }) => path.replace(':eventId', ids.event).replace(':certificateId', ids.certificate).replace(':version', '1');
    const ask = async (zoneId: string, ids: { event: string; certificate: string }) => {
      const { status, body } = await world.gateway({ id: zoneId }, method, filled(ids), { tenant, ...(json === undefined ? {} : { json }) });
      return { id, status, body: { ...body, requestId: '' } };
    };
    const mine = { event: eventId, certificate: certificateId };
    const never = await ask(absent.zone, absent);
    expect(never).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect(await ask(theirs.id, mine)).toEqual(never);
    if (/:(?:eventId|certificateId)/.test(path)) expect(await ask(own.id, mine)).toEqual(await ask(own.id, absent));
  }
  expect(await world.sql('select status, generation from gateway_certificate where id = $1', certificateId)).toEqual([{ status: 'failed', generation: 1 }]);
  expect((await world.policy(theirs)).version).toBe(1);
});

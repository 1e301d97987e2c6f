import { ensureZoneCertificates } from '../../src/gateway/service';
import { withGatewayApi } from '../support/gateway-api';

const world = withGatewayApi();
const request = { method: 'GET', url: 'https://www.example.test/search?q=1', headers: [{ name: 'user-agent', value: 'Mozilla/5.0' }, { name: 'accept', value: '*/*' }], ip: '198.51.100.7' };
const attack = { ...request, url: "https://www.example.test/search?q=1'%20UNION%20SELECT%20password%20FROM%20users--%20" };
const evaluate = async (zone: { id: string }, json: object) => world.gateway(zone, 'POST', '/evaluate', { json });

test('evaluateGatewayRequest judges by the policy in force or by a draft, tells every stage, and keeps nothing', async () => {
  const zone = await world.zone({ proxied: false });
  expect((await evaluate(zone, { request })).body.evaluation).toMatchObject({ outcome: 'clean', wouldHave: null, rules: [], durationMicros: expect.any(Number), steps: expect.arrayContaining([expect.objectContaining({ stage: expect.any(String), result: expect.any(String) })]) });
  expect((await evaluate(zone, { request: attack })).body.evaluation).toMatchObject({ outcome: 'monitor', wouldHave: 'block', anomalyScore: expect.any(Number), rules: expect.arrayContaining([expect.objectContaining({ id: expect.stringMatching(/^\d+$/), matched: expect.any(String), tags: expect.arrayContaining(['attack-sqli']) })]) });
  expect((await evaluate(zone, { request: attack, policy: { mode: 'block' } })).body.evaluation).toMatchObject({ outcome: 'block' });
  expect((await evaluate(zone, { request, policy: { mode: 'block', ipLists: { deny: ['198.51.100.0/24'] } } })).body.evaluation).toMatchObject({ outcome: 'block', steps: [expect.objectContaining({ ruleId: 'ip_list.deny' })] });
  expect((await evaluate(zone, { request: attack, policy: { mode: 'block', ipLists: { allow: ['198.51.100.7'] } } })).body.evaluation).toMatchObject({ outcome: 'allow' });
  expect((await world.policy(zone)).version).toBe(0);
  expect(await world.sql('select id from gateway_event where zone_id = $1', zone.id)).toEqual([]);
});

test('what cannot be judged is refused, and ten evaluations a minute are enough', async () => {
  const zone = await world.zone({ proxied: false });
  for (const [faulty, path] of [[{ ...request, url: '/search' }, 'request.url'], [{ ...request, ip: 'x' }, 'request.ip'], [{ ...request, body: 'x'.repeat(65_537) }, 'request.body'], [{ ...request, headers: [{ name: 'a b', value: '' }] }, 'request.headers.0.name']] as const) {
    expect((await evaluate(zone, { request: faulty })).body).toMatchObject({ code: 'validation_error', issues: [{ path }] });
  }
  expect((await evaluate(zone, { request, policy: { mode: 'block', customRules: [{ match: { field: 'path', op: 'matches', value: '(a)\\1' } }] } })).body.code).toBe('unsafe_regex');
  const answers = await Promise.all(Array.from({ length: 10 }, () => evaluate(zone, { request })));
  expect(answers.map(({ status }) => status)).toContain(429);
});

test('listGatewayRules lists the rules of the policy, by text, tag and level', async () => {
  const zone = await world.zone({ proxied: false });
  const list = async (query = '') => (await world.gateway(zone, 'GET', `/rules${query}`)).body;
  const { rules } = await list();
  expect(rules.length).toBeGreaterThan(20);
  const [first] = rules;
  expect(first).toEqual({ id: expect.stringMatching(/^\d+$/), message: expect.any(String), severity: first.severity, paranoiaLevel: expect.any(Number), phase: expect.any(Number), tags: expect.any(Array) });
  expect((await list(`?q=${first.id}`)).rules).toEqual([first]);
  const level2 = (await list('?paranoiaLevel=2')).rules;
  expect(level2.every(({ paranoiaLevel }: { paranoiaLevel: number }) => paranoiaLevel === 2)).toBe(true);
  const page = await list('?limit=2');
  expect([...page.rules, ...(await list(`?limit=2&cursor=${page.nextCursor}`)).rules]).toEqual(rules.slice(0, 4));
  expect((await list('?paranoiaLevel=5')).code).toBe('validation_error');
});

test('listGatewayPolicyVersions, getGatewayPolicyVersion and restoreGatewayPolicyVersion: every version as it was, and back as a new one', async () => {
  const zone = await world.zone();
  for (const mode of ['block', 'off', 'monitor']) await world.put(zone, { mode });
  const { versions } = (await world.gateway(zone, 'GET', '/versions')).body;
  expect(versions).toEqual([
    { version: 3, updatedBy: world.tenant.userIds.owner, createdAt: expect.any(String), changes: [{ path: 'mode', from: 'off', to: 'monitor' }] },
    { version: 2, updatedBy: world.tenant.userIds.owner, createdAt: expect.any(String), changes: [{ path: 'mode', from: 'block', to: 'off' }] },
    { version: 1, updatedBy: world.tenant.userIds.owner, createdAt: expect.any(String), changes: [{ path: 'mode', from: 'monitor', to: 'block' }] },
  ]);
  expect((await world.gateway(zone, 'GET', '/versions/1')).body.policy).toMatchObject({ version: 1, mode: 'block', zoneId: zone.id });
  expect((await world.gateway(zone, 'POST', '/versions/1/restore', { headers: { 'if-match': '"2"' } })).body.code).toBe('precondition_failed');
  expect((await world.gateway(zone, 'POST', '/versions/1/restore')).body).toMatchObject({ policy: { version: 4, mode: 'block' }, propagation: { version: 4 }, warnings: [] });
  expect((await world.gateway(zone, 'POST', '/versions/1/restore')).body.policy.version).toBe(4);
  for (const version of ['0', '9', 'x']) expect((await world.gateway(zone, 'GET', `/versions/${version}`)).status).toBe(404);
  await expect(world.sql('update gateway_policy_version set version = 9 where zone_id = $1', zone.id)).rejects.toThrow('never changes');
});

test('listGatewayHosts, listGatewayCertificates and renewGatewayCertificate follow the proxied names of a zone', async () => {
  const zone = await world.zone();
  const hosts = async () => (await world.gateway(zone, 'GET', '/hosts')).body.hosts;
  expect(await hosts()).toEqual([zone.domain, `www.${zone.domain}`].map((fqdn) => ({
    fqdn, recordIds: [expect.stringMatching(/^rec_/)], served: true, reason: null, certificateId: null, origins: [{ address: '127.0.0.1', healthy: true, lastError: null, checkedAt: null }], requestsLastHour: 0,
  })));
  const { deps } = world.api;
  expect(await ensureZoneCertificates(deps, zone.id)).toEqual({ opened: 1, retired: 0 });
  expect(await ensureZoneCertificates(deps, zone.id)).toEqual({ opened: 0, retired: 0 });
  const { certificates: [certificate] } = (await world.gateway(zone, 'GET', '/certificates')).body;
  expect(certificate).toMatchObject({ zoneId: zone.id, hostnames: [zone.domain, `*.${zone.domain}`], status: 'requested', issuer: 'self_signed', method: null, attempts: 0, lastError: null });
  expect((await hosts()).map(({ certificateId }: { certificateId: string }) => certificateId)).toEqual([certificate.id, certificate.id]);
  const renew = () => world.gateway(zone, 'POST', `/certificates/${certificate.id}/renew`);
  expect((await renew()).body).toMatchObject({ code: 'invalid_state' });
  await world.sql(`update gateway_certificate set status = 'failed' where id = $1`, certificate.id);
  expect((await renew()).body).toMatchObject({ certificate: { id: certificate.id }, operation: { kind: 'gateway.ensure_certificate', resourceId: certificate.id, state: 'pending' } });
  expect(await renew()).toMatchObject({ status: 429, body: { code: 'rate_limited' } });
  expect((await world.gateway(zone, 'POST', '/certificates/crt_00000000000000000000000000/renew')).status).toBe(404);
  const instance = await world.instance();
  await world.sql(`insert into gateway_origin (instance_id, zone_id, hostname, address, healthy, last_error, checked_at) values ($1, $2, $3, '127.0.0.1', false, 'connection refused', now())`, instance, zone.id, zone.domain);
  expect((await hosts())[0].origins).toEqual([{ address: '127.0.0.1', healthy: false, lastError: 'connection refused', checkedAt: expect.any(String) }]);
  await world.sql(`update dns_zone set status = 'pending', served = false where id = $1`, zone.id);
  expect((await hosts()).map(({ served, reason }: { served: boolean; reason: string }) => ({ served, reason }))).toEqual(Array(2).fill({ served: false, reason: 'zone_pending' }));
  expect(await ensureZoneCertificates(deps, zone.id)).toEqual({ opened: 0, retired: 1 });
  expect(await world.sql('select status, key_sealed from gateway_certificate where id = $1', certificate.id)).toEqual([{ status: 'retired', key_sealed: null }]);
  await world.sql('delete from gateway_instance');
});

import type { X509Certificate } from 'node:crypto';
import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { Registry } from 'prom-client';
import { createGatewayActivities, type GatewayActivities } from '../../activities/gateway';
import { createListener, type Listener } from '../../src/db/listen';
import { listProxyVersions, loadProxyZone } from '../../src/dns/service';
import { startGateway, type Gateway } from '../../src/edge/gateway/gateway';
import { certificateIssuerOf } from '../../src/gateway-control-composition';
import { policySchema } from '../../src/gateway/schemas';
import { ensureZoneCertificates, sweepCertificates, type CertificateRun } from '../../src/gateway/service';
import { AcmeServer } from '../support/acme-server';
import { silent } from '../support/accepted-work';
import { withDnsWorld } from '../support/dns-world';
import { headerJudge } from '../support/gateway-world';
import type { Tenant } from '../support/tenant';
import { until } from '../support/until';

type Zone = { id: string; domain: string; tenant: Tenant };
const environment: Record<string, string> = { GATEWAY_CERT_ISSUER: 'acme', ACME_EMAIL: 'certificates@holdfast.test' };
const acme = new AcmeServer({
  txt: async (name) => (await world.dig(name, 'TXT')).answers.map((line) => line.split(' ').slice(3).join(' ').replaceAll('"', '')),
  get: (hostname, path) => visit(hostname, path),
});
beforeAll(async () => {
  await acme.start();
  Object.assign(environment, { ACME_DIRECTORY_URL: acme.directoryUrl, ACME_CA_FILE: acme.caFile });
});
const world = withDnsWorld(67, environment);
let gateway: Gateway;
let listener: Listener;
let activities: GatewayActivities;
let issuer: ReturnType<typeof certificateIssuerOf>;

beforeAll(async () => {
  const { deps } = world.api;
  const { db, secrets, config } = deps;
  listener = createListener({ url: config.DATABASE_URL, process: 'gateway', log: silent });
  gateway = await startGateway({
    http: '127.0.0.1:0', https: '127.0.0.1:0', db, listener, secrets, log: silent, registry: new Registry(), instanceId: `test-${randomBytes(4).toString('hex')}`,
    routes: { load: (zoneId) => loadProxyZone(db.prisma, zoneId), versions: (seconds) => listProxyVersions(db.prisma, seconds) },
    makeJudge: headerJudge, defaultPolicy: policySchema.parse({ mode: 'off' }), sink: { reserve: () => null, record: () => undefined }, describe: () => ({ country: null, asn: null, isVerifiedBot: false }),
    resolveName: () => Promise.resolve({ addresses: [], ttlSeconds: 1 }), mayDial: () => false, trustedProxies: [], loopToken: 'test.holdfast', bodyBytesMax: 1_000_000,
    snapshotFile: join(tmpdir(), `holdfast-gateway-${randomBytes(6).toString('hex')}`, 'snapshot'), share: 1,
  });
  issuer = certificateIssuerOf(deps);
  activities = createGatewayActivities({ ...deps, certificateIssuer: issuer });
});
beforeEach(() => {
  acme.fault = () => null;
  acme.finding = null;
});
afterAll(async () => {
  await gateway.stop(500);
  await listener.close();
  await acme.close();
});

const sql = async (text: string, ...values: unknown[]): Promise<Record<string, unknown>[]> => (await world.api.deps.db.pool.query(text, values)).rows;
const quiet = new DefaultLogger('ERROR');
const portOf = (address: string) => Number(address.slice(address.lastIndexOf(':') + 1));
const run = (name: Exclude<keyof GatewayActivities, 'markFailed' | 'listDueCertificates' | 'maintainGatewayTables' | 'reportGatewayRequests'>, input: CertificateRun): Promise<unknown> => new MockActivityEnvironment({}, { logger: quiet }).run(activities[name], input);
const fail = (input: CertificateRun, code: string) => new MockActivityEnvironment({}, { logger: quiet }).run(activities.markFailed, { ...input, failure: { code, message: 'It failed.', cancelled: false } });
const rowOf = async (id: string) => (await sql(`select *, extract(epoch from next_attempt_at - now()) as pause from gateway_certificate where id = $1`, id))[0] ?? {};
const ordersOf = async (hostname: string) => (await sql('select 1 from gateway_certificate_order where hostname = $1', hostname)).length;

function visit(hostname: string, path: string): Promise<string> {
  return new Promise((done, refuse) => {
    httpRequest({ host: '127.0.0.1', port: portOf(gateway.addresses.http), path, headers: { host: hostname } }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString())).on('end', () => done(text));
    }).on('error', refuse).end();
  });
}

/** What the gateway shows a visitor of this name. */
function shown(servername: string): Promise<X509Certificate> {
  return new Promise((done, refuse) => {
    const socket = connect({ port: portOf(gateway.addresses.https), host: '127.0.0.1', servername, rejectUnauthorized: false }, () => {
      const certificate = socket.getPeerX509Certificate();
      socket.destroy();
      if (certificate) done(certificate);
      else refuse(new Error('No certificate was shown.'));
    });
    socket.on('error', refuse);
  });
}

/** An active zone, delegated to us, with `www` proxied. */
async function zone(domain: string, { external = false, names = ['www'], tenant = world.tenant } = {}): Promise<Zone> {
  const { body } = await world.ask('POST', '/dns/zones', { tenant, json: { domain, mode: external ? 'external' : 'full_hosting' } });
  const { id, nameservers } = body.zone;
  if (!external) world.registry.delegate(domain, nameservers);
  for (const name of names) await world.ask('POST', `/dns/zones/${id}/records`, { tenant, json: { type: 'A', name, value: '127.0.0.1', proxied: true } });
  await sql(`update dns_zone set served = false, version = version + 1 where domain = $1 and id <> $2`, domain, id);
  await sql(`update dns_zone set status = 'active', served = (mode = 'full_hosting'), activated_at = now(), next_check_at = now() + interval '1 day', version = version + 1 where id = $1`, id);
  await sql(`select pg_notify('dns_zone', id || ':' || version) from dns_zone where id = $1`, id);
  await until(async () => (await visit(`${names[0] ?? 'www'}.${domain}`, '/')).includes('502') || gateway.zones() > 0, `${domain} to be served`);
  return { id, domain, tenant };
}

/** What asks for the certificate of the zone's first name; the same run as the operation has. */
async function wanted({ id }: Pick<Zone, 'id'>): Promise<CertificateRun> {
  await ensureZoneCertificates(world.api.deps, id);
  const [row] = await sql(`select c.id, c.generation, o.id as "operationId" from gateway_certificate c join operation o on o.resource_id = c.id
    where c.zone_id = $1 and c.status <> 'retired' order by o.created_at desc limit 1`, id);
  return { certificateId: String(row?.['id']), generation: Number(row?.['generation']), operationId: String(row?.['operationId']) };
}

async function obtained(input: CertificateRun): Promise<Record<string, unknown>> {
  for (const step of ['loadCertificateOrder', 'markIssuing', 'checkCaa', 'obtainCertificate', 'markValid', 'removeChallenge'] as const) await run(step, input);
  return rowOf(input.certificateId);
}

test('a hosted zone proves its apex and its wildcard in one order by DNS; each step twice is as once; no key can be read', async () => {
  const made = await zone('hosted.test', { names: ['www', 'api'] });
  const input = await wanted(made);
  const before = acme.orders.size;
  for (const step of ['loadCertificateOrder', 'markIssuing', 'checkCaa', 'obtainCertificate', 'markValid', 'removeChallenge'] as const) for (let i = 0; i < 2; i++) await run(step, input);
  const row = await rowOf(input.certificateId);
  expect(row).toMatchObject({ status: 'valid', hostnames: ['hosted.test', '*.hosted.test'], method: 'dns01', attempts: 0, last_error_code: null, next_key_sealed: null, next_chain: null, order_url: null });
  expect(acme.orders.size).toBe(before + 1);
  expect([await ordersOf('hosted.test'), await ordersOf('*.hosted.test')]).toEqual([1, 1]);
  expect(await sql('select state from operation where id = $1', input.operationId)).toEqual([{ state: 'succeeded' }]);
  expect(await sql('select token from gateway_acme_token')).toEqual([]);
  await until(async () => (await world.dig('_acme-challenge.hosted.test', 'TXT')).answers.length === 0, 'the proofs to be gone');
  await until(async () => (await shown('www.hosted.test')).subjectAltName === 'DNS:hosted.test, DNS:*.hosted.test', 'the certificate to be shown');
  const life = Number(row['not_after']) - Number(row['not_before']);
  expect(Math.abs(Number(row['not_after']) - Number(row['renew_at']) - life / 3)).toBeLessThan(1_000);

  const { body } = await world.ask('GET', `/dns/zones/${made.id}/security-gateway/certificates`);
  const dump = JSON.stringify([row, body, await sql('select * from gateway_acme_account'), await sql('select * from operation where id = $1', input.operationId)]);
  expect(dump).not.toContain('PRIVATE KEY');
  const sealed = String(row['key_sealed']);
  expect(world.api.deps.secrets.open(sealed, `certificate:${input.certificateId}`)).toContain('PRIVATE KEY');
  expect(() => world.api.deps.secrets.open(sealed, 'certificate:crt_00000000000000000000000000')).toThrow();
});

test('a run that was cut off goes on with the same order and the same key', async () => {
  const input = await wanted(await zone('resumed.test'));
  for (const step of ['loadCertificateOrder', 'markIssuing'] as const) await run(step, input);
  const before = acme.orders.size;
  for (const cut of ['authorization', 'challenge', 'finalize', 'certificate'] as const) {
    acme.fault = (step) => (step === cut ? (cut === 'finalize' || cut === 'challenge' ? 'lost' : 'cut') : null);
    await expect(run('obtainCertificate', input)).rejects.toThrow();
  }
  const key = (await rowOf(input.certificateId))['next_key_sealed'];
  expect(key).toEqual(expect.any(String));
  acme.fault = () => null;
  for (const step of ['obtainCertificate', 'markValid'] as const) await run(step, input);
  expect(await rowOf(input.certificateId)).toMatchObject({ status: 'valid', key_sealed: key });
  expect(acme.orders.size).toBe(before + 1);
});

test('CAA records that name another authority forbid the order, and nothing is ordered', async () => {
  const made = await zone('strict.test');
  await world.ask('POST', `/dns/zones/${made.id}/records`, { json: { type: 'CAA', name: '@', value: '0 issue "other.test"' } });
  const input = await wanted(made);
  await until(async () => (await world.dig('strict.test', 'CAA')).answers.length === 1);
  await run('markIssuing', input);
  await expect(run('checkCaa', input)).rejects.toMatchObject({ code: 'certificate_caa_forbids' });
  for (let i = 0; i < 2; i++) await fail(input, 'certificate_caa_forbids');
  expect(await rowOf(input.certificateId)).toMatchObject({ status: 'failed', attempts: 1, last_error_code: 'certificate_caa_forbids' });
  expect(await ordersOf('strict.test')).toBe(0);
  await world.ask('POST', `/dns/zones/${made.id}/records`, { json: { type: 'CAA', name: '@', value: '0 issue "ca.test"' } });
  await until(async () => (await world.dig('strict.test', 'CAA')).answers.length === 2);
  await run('checkCaa', input);
});

test('what the authority refuses for good ends the order; what it cannot do now is tried again when it says', async () => {
  const input = await wanted(await zone('refused.test'));
  await run('markIssuing', input);
  for (const [type, status, expected] of [['rejectedIdentifier', 403, { code: 'certificate_rejected' }], ['caa', 403, { code: 'certificate_caa_forbids' }], ['userActionRequired', 403, { code: 'certificate_rejected' }],
    ['rateLimited', 429, { name: 'TryLater', options: { afterMs: 1_200_000 } }], ['serverInternal', 500, { name: 'TryLater' }]] as const) {
    acme.fault = (step) => (step === 'newOrder' ? { status, type, ...(type === 'rateLimited' ? { retryAfter: '1200' } : {}) } : null);
    await expect(run('obtainCertificate', input)).rejects.toMatchObject(expected);
  }
  expect(await ordersOf('refused.test')).toBe(0);
  acme.fault = () => null;
  acme.finding = 'unauthorized';
  await expect(run('obtainCertificate', input)).rejects.toMatchObject({ code: 'certificate_rejected' });
  expect(await sql('select 1 from gateway_acme_token where certificate_id = $1', input.certificateId)).toEqual([]);
});

test('a name has three orders an hour, however often they fail', async () => {
  const input = await wanted(await zone('often.test'));
  await run('markIssuing', input);
  acme.finding = 'dns';
  const before = acme.orders.size;
  for (let i = 0; i < 3; i++) await expect(run('obtainCertificate', input)).rejects.toMatchObject({ name: 'TryLater', message: 'The certificate authority answered dns.' });
  await expect(run('obtainCertificate', input)).rejects.toMatchObject({ name: 'TryLater', message: expect.stringContaining('Three orders'), options: { afterMs: expect.any(Number) } });
  expect([acme.orders.size - before, await ordersOf('often.test')]).toEqual([3, 3]);
  await sql(`update gateway_certificate_order set ordered_at = ordered_at - interval '1 hour' where hostname like '%often.test'`);
  acme.finding = null;
  expect(await obtained(input)).toMatchObject({ status: 'valid' });
});

test('after 1, 2, 4 … 24 hours a failed order is due again, and not before', async () => {
  const made = await zone('again.test');
  const input = await wanted(made);
  const due = async () => {
    await sweepCertificates(world.api.deps, () => undefined);
    return (await rowOf(input.certificateId))['generation'];
  };
  for (const hours of [1, 2, 4, 8, 16, 24, 24]) {
    const present = await wanted(made);
    await run('markIssuing', present);
    await fail(present, 'backend_error');
    const { pause, generation, status } = await rowOf(input.certificateId);
    expect({ status, isPaused: Math.abs(Number(pause) - hours * 3_600) < 120 }).toEqual({ status: 'failed', isPaused: true });
    expect(await due()).toBe(generation);
    await sql('update gateway_certificate set next_attempt_at = now() where id = $1', input.certificateId);
    expect(await due()).toBe(Number(generation) + 1);
  }
});

test('an authority that has forgotten our account is told of us again', async () => {
  acme.forget();
  const input = await wanted(await zone('forgotten.test'));
  await expect(run('obtainCertificate', input)).rejects.toMatchObject({ message: 'The certificate authority does not know our account.' });
  expect(await obtained(input)).toMatchObject({ status: 'valid' });
});

test('an external zone proves each name by HTTP at the gateway', async () => {
  const input = await wanted(await zone('elsewhere.test', { external: true }));
  expect(await obtained(input)).toMatchObject({ status: 'valid', hostnames: ['www.elsewhere.test'], method: 'http01' });
  await until(async () => (await shown('www.elsewhere.test')).subjectAltName === 'DNS:www.elsewhere.test', 'the certificate to be shown');
});

test('a renewal is seen by nobody: every visitor gets the old or the new certificate, and a failed one leaves the old', async () => {
  const made = await zone('renewed.test');
  const input = await wanted(made);
  const old = String((await obtained(input))['serial_number']).toUpperCase();
  await until(async () => (await shown('www.renewed.test')).serialNumber === old);
  const seen = new Set<string>();
  let ended = false;
  const traffic = (async () => {
    while (!ended) seen.add((await shown('www.renewed.test')).serialNumber);
  })();
  await sql('update gateway_certificate set renew_at = now() where id = $1', input.certificateId);
  await sweepCertificates(world.api.deps, () => undefined);
  const failed = await wanted(made);
  await run('markIssuing', failed);
  expect(await rowOf(input.certificateId)).toMatchObject({ status: 'renewing' });
  await fail(failed, 'certificate_rejected');
  expect(await rowOf(input.certificateId)).toMatchObject({ status: 'valid', last_error_code: 'certificate_rejected' });
  await sql('update gateway_certificate set next_attempt_at = now() where id = $1', input.certificateId);
  await sweepCertificates(world.api.deps, () => undefined);
  const present = String((await obtained(await wanted(made)))['serial_number']).toUpperCase();
  await until(async () => (await shown('www.renewed.test')).serialNumber === present);
  ended = true;
  await traffic;
  expect(seen).toEqual(new Set([old, present]));
  await sql(`update gateway_certificate set not_after = now() - interval '1 second' where id = $1`, input.certificateId);
  await sweepCertificates(world.api.deps, () => undefined);
  expect(await rowOf(input.certificateId)).toMatchObject({ status: 'expired', generation: 4 });
});

test('a name that is no longer served takes its key with it, and a new owner of the domain never shows the old one’s certificate', async () => {
  const former = await zone('handed.test');
  const input = await wanted(former);
  const old = String((await obtained(input))['serial_number']).toUpperCase();
  await until(async () => (await shown('www.handed.test')).serialNumber === old);
  const tenant = await world.newTenant();
  await sql(`update dns_zone set status = 'moved', served = false, version = version + 1 where id = $1`, former.id);
  const next = await zone('handed.test', { tenant });
  await until(async () => (await shown('www.handed.test')).serialNumber !== old, 'the former certificate to go');
  expect((await shown('www.handed.test')).subjectAltName).toBeUndefined();
  await expect(run('loadCertificateOrder', { ...input })).resolves.toEqual({ served: false });
  await sweepCertificates(world.api.deps, () => undefined);
  expect(await rowOf(input.certificateId)).toMatchObject({ status: 'retired', key_sealed: null, next_key_sealed: null });
  const mine = await obtained(await wanted(next));
  await until(async () => (await shown('www.handed.test')).serialNumber === String(mine['serial_number']).toUpperCase());
});

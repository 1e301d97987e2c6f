import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { Registry } from 'prom-client';
import { newId } from '../../src/core/ids';
import { Secrets } from '../../src/core/secrets';
import { createListener, type Listener } from '../../src/db/listen';
import { listProxyVersions, loadProxyZone } from '../../src/dns/service';
import type { Decision, EventSink, FinishedRequest } from '../../src/gateway/ports';
import { policySchema, type Policy } from '../../src/gateway/schemas';
import { startGateway, type Gateway, type GatewayDeps } from '../../src/edge/gateway/gateway';
import type { MakeJudge } from '../../src/edge/gateway/judge';
import { originCheck } from '../../src/edge/gateway/origin-access';
import { clean } from '../../src/edge/gateway/visit';
import { inNetworks } from '../../src/edge/gateway/client-address';
import { silent } from './accepted-work';
import { withDatabase, type TestDatabase } from './database';
import { masterKey } from './postgres-api';
import { until } from './until';

export type ZoneRecord = { name: string; value: string; port?: number; protocol?: 'http' | 'https'; path?: string; hostHeader?: string; type?: 'A' | 'AAAA' | 'CNAME'; proxied?: boolean };
export type Origin = { port: number; seen: IncomingMessage[]; connections: () => number; close(): Promise<void> };
export type RawAnswer = { text: string; status: number; head: string; body: string };

export interface GatewayWorld {
  readonly test: TestDatabase;
  readonly gateway: Gateway;
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly records: { request: FinishedRequest; eventId: string | null }[];
  readonly secrets: Secrets;
  /** Rows of a zone that is served, as the DNS product keeps them; resolves when the gateway serves it. */
  zone(domain: string, records: readonly ZoneRecord[], more?: { status?: string; policy?: object }): Promise<string>;
  writePolicy(zoneId: string, policy: object): Promise<number>;
  origin(listener: RequestListener, server?: Server): Promise<Origin>;
  /** Bytes as they are, to the plain listener; resolves with all that came until it was closed, or until `enough` says so. */
  raw(bytes: string | Buffer, enough?: (text: string) => boolean): Promise<RawAnswer>;
  restart(change?: Partial<GatewayDeps>): Promise<void>;
}

/** Blocks what has the header `x-block`, in the mode that blocks; all else is clean. The rest of a policy is judged elsewhere. */
export const headerJudge: MakeJudge = ({ version, policy }) => ({
  policy, version, ruleSetVersion: null,
  judge: (facts) => {
    const asked = facts.headers.some(([name]) => name === 'x-block');
    if (!asked) return clean;
    const found: Decision = { ...clean, source: 'custom', ruleId: 'x', ruleName: 'X', outcome: 'block' };
    return policy.mode === 'block' ? { ...found, refusal: { status: 403, code: 'request_blocked', retryAfterSeconds: null, page: 'refused' } } : { ...found, outcome: 'monitor', wouldHave: 'block' };
  },
  inspectsAnswer: () => false,
  judgeResponse: (_facts, decision) => decision,
  answered: () => undefined,
  challengePage: () => ({ status: 403, headers: [], body: 'challenge' }),
  answerChallenge: () => ({ page: { status: 303, headers: [['location', '/']], body: '' }, decision: clean }),
});

/** A gateway on loopback with a database of its own. What judges is `headerJudge` unless the test has another. */
export function withGateway(change: Partial<GatewayDeps> = {}): GatewayWorld {
  const test = withDatabase();
  const records: GatewayWorld['records'] = [];
  const closers: (() => Promise<unknown>)[] = [];
  const secrets = new Secrets([masterKey]);
  let gateway: Gateway | undefined;
  let listener: Listener | undefined;
  const sink: EventSink = {
    reserve: (_facts, decision) => (decision.outcome === 'clean' ? null : newId('gwe')),
    record: (request, eventId) => void records.push({ request, eventId }),
  };
  const need = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('It exists from beforeAll on.');
    return value;
  };
  const snapshotFile = join(tmpdir(), `holdfast-gateway-${randomBytes(6).toString('hex')}`, 'snapshot');
  const start = async (more: Partial<GatewayDeps>) => {
    const db = test.database;
    listener = createListener({ url: test.url, process: 'gateway', log: silent });
    const loopback = inNetworks(['127.0.0.0/8', '::1/128']);
    gateway = await startGateway({
      http: '127.0.0.1:0', https: '127.0.0.1:0', db, listener, secrets, log: silent, registry: new Registry(), instanceId: `test-${randomBytes(4).toString('hex')}`,
      routes: { load: (zoneId) => loadProxyZone(db.prisma, zoneId), versions: (seconds) => listProxyVersions(db.prisma, seconds) },
      makeJudge: headerJudge, defaultPolicy: policySchema.parse({ mode: 'monitor' }), sink, describe: () => ({ country: null, asn: null, isVerifiedBot: false }),
      resolveName: () => Promise.resolve({ addresses: [], ttlSeconds: 1 }), mayDial: originCheck(loopback, []), trustedProxies: [], loopToken: 'test.holdfast', bodyBytesMax: 10_000_000,
      snapshotFile, share: 1, ...change, ...more,
    });
  };
  const stop = async () => {
    await gateway?.stop(500);
    await listener?.close();
  };
  beforeAll(() => start({}));
  afterAll(async () => {
    await stop();
    for (const close of closers) await close();
  });
  const portOf = (address: string) => Number(address.slice(address.lastIndexOf(':') + 1));
  const world: GatewayWorld = {
    test, records, secrets,
    get gateway() { return need(gateway); },
    get httpPort() { return portOf(need(gateway).addresses.http); },
    get httpsPort() { return portOf(need(gateway).addresses.https); },
    async zone(domain, zoneRecords, { status = 'active', policy } = {}) {
      const zoneId = await writeZone(test, domain, zoneRecords, status);
      const version = policy ? await world.writePolicy(zoneId, policy) : 0;
      const [first] = zoneRecords;
      if (status === 'active' && first) await until(async () => (await world.raw(`GET /up HTTP/1.1\r\nHost: ${hostOf(first.name, domain)}\r\nConnection: close\r\n\r\n`)).status !== 404, `${domain} to be served`);
      if (status === 'active' && policy) await until(async () => (await test.database.pool.query('select from gateway_ack where zone_id = $1 and policy_version >= $2', [zoneId, version])).rowCount !== 0, `the policy of ${domain} to be in force`);
      return zoneId;
    },
    async writePolicy(zoneId, policy) {
      const { rows } = await test.database.pool.query<{ version: number }>(`insert into gateway_policy (zone_id, version, mode, document) values ($1, 1, $2::jsonb ->> 'mode', $2::jsonb)
        on conflict (zone_id) do update set version = gateway_policy.version + 1, mode = excluded.mode, document = excluded.document, updated_at = now() returning version`, [zoneId, JSON.stringify(policySchema.parse(policy) satisfies Policy)]);
      return rows[0]?.version ?? 0;
    },
    async origin(listenerOf, server = createServer()) {
      const seen: IncomingMessage[] = [];
      let connections = 0;
      server.on('connection', () => (connections += 1));
      server.on('request', (request: IncomingMessage, response) => {
        if (request.url === '/up') return void response.end();
        seen.push(request);
        listenerOf(request, response);
      });
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
      const close = async () => {
        server.closeAllConnections();
        await new Promise((done) => server.close(done));
      };
      closers.push(close);
      return { port: (server.address() as AddressInfo).port, seen, connections: () => connections, close };
    },
    raw: (bytes, enough) => sendRaw(connect(world.httpPort, '127.0.0.1'), bytes, enough),
    async restart(more = {}) {
      await stop();
      await start(more);
    },
  };
  return world;
}

export function sendRaw(socket: Socket, bytes: string | Buffer, enough?: (text: string) => boolean): Promise<RawAnswer> {
  return new Promise((done) => {
    const chunks: Buffer[] = [];
    const finish = () => {
      socket.destroy();
      const text = Buffer.concat(chunks).toString('latin1');
      const at = text.indexOf('\r\n\r\n');
      done({ text, status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), head: at < 0 ? text : text.slice(0, at), body: at < 0 ? '' : text.slice(at + 4) });
    };
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      if (enough?.(Buffer.concat(chunks).toString('latin1'))) finish();
    });
    socket.setTimeout(20_000, finish);
    socket.on('error', finish);
    socket.on('close', finish);
    socket.write(bytes, 'latin1' as BufferEncoding);
  });
}

function hostOf(name: string, domain: string): string {
  return name === '@' ? domain : `${name === '*' ? 'any' : name}.${domain}`;
}

export async function writeZone({ database: { pool } }: TestDatabase, domain: string, records: readonly ZoneRecord[], status: string): Promise<string> {
  const zoneId = newId('zone');
  const live = status === 'active';
  await pool.query(`with zone as (insert into dns_zone (id, org_id, project_id, domain, unicode_domain, registrable, mode, status, served, serial, proxied_count, activated_at)
      values ($1, 'org_x', $2, $3, $3, $3, 'full_hosting', $4, $5, 2026112100, $6, now()) returning id)
    insert into dns_record (id, zone_id, type, name, value, ttl, proxied, origin_protocol, origin_port, origin_path, origin_host_header, rdata_hash, version)
    select r.id, zone.id, r.type, r.name, r.value, 300, r.proxied, case when r.proxied then r.protocol end, r.port, r.path, r."hostHeader", decode(md5(r.id), 'hex'), 1
    from zone, json_to_recordset($7::json) as r (id text, type text, name text, value text, proxied boolean, protocol text, port int, path text, "hostHeader" text)`,
  [zoneId, `prj_${zoneId}`, domain, status, live, records.length, JSON.stringify(records.map((record) => ({ id: newId('rec'), type: 'A', protocol: 'http', proxied: true, port: null, path: null, hostHeader: null, ...record })))]);
  return zoneId;
}

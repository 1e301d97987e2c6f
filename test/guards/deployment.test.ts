import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { loadConfig } from '../../src/config';
import { createMetrics } from '../../src/core/metrics';
import { createGatewayMetrics } from '../../src/edge/gateway/metrics';
import { createGatewayMetrics as createPostgresGatewayMetrics } from '../../src/edge/postgres/gateway/metrics';
import { queues } from '../../src/temporal/queues';

const root = join(__dirname, '../..');
const service = z.object({ build: z.string().optional(), command: z.array(z.string()).optional(), environment: z.record(z.string(), z.string()).optional() });
const { services } = z.object({ services: z.record(z.string(), service) }).parse(parse(readFileSync(join(root, 'docker-compose.yml'), 'utf8'), { merge: true }));
const ours = Object.entries(services).filter(([, { build }]) => build !== undefined);
const answers: Readonly<Record<string, string>> = {
  HOLDFAST_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'), AUTH_SECRET: 'a'.repeat(64), MAIL_VERP_SECRET: 'v'.repeat(64), POSTGRES_PASSWORD: 'p4', TEMPORAL_DB_PASSWORD: 't4',
  MAIL_BOUNCE_DOMAIN: 'bounce.example.com', MAIL_TRANSPORT: 'smtp_relay', PUBLIC_URL: 'https://api.example.com', DNS_SERVERS: '203.0.113.53:53;203.0.113.54:53', GATEWAY_PUBLIC_ADDRESSES: '203.0.113.53', PG_GATEWAY_DOMAIN: 'db.example.com',
  DNS_NAMESERVER_SUFFIX: 'ns.example.com', DNS_EDGE_SUFFIX: 'edge.example.com', DNS_SOA_RNAME: 'hostmaster.example.com',
};

/** Variables as Compose fills them in: `${NAME:?why}` must be answered, `${NAME:-default}` need not. */
function filled(text: string): string {
  return text.replace(/\$\{(\w+)(?::([?-])([^}]*))?\}/g, (_, name: string, kind: string | undefined, rest: string | undefined) => {
    const value = answers[name];
    if (value === undefined && kind !== '-') throw new Error(`${name} is not among the answers`);
    return value ?? rest ?? '';
  });
}

const configOf = (environment: Record<string, string> = {}) => loadConfig(Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, filled(value)])));

test.each(ours)('the configuration of %s is whole', (_, { environment }) => {
  expect(configOf(environment).HOLDFAST_MODE).toBe('production');
});

test('every role and every queue is served', () => {
  const running = (entry: string) => ours.filter(([, { command }]) => command?.includes(`dist/src/${entry}.js`)).map(([, { environment }]) => configOf(environment));
  expect(running('edge').flatMap(({ EDGE_SERVES }) => EDGE_SERVES).toSorted()).toEqual(configOf(ours[0]?.[1].environment).EDGE_SERVES.toSorted());
  expect(new Set(running('worker').flatMap(({ WORKER_QUEUES }) => WORKER_QUEUES))).toEqual(new Set(queues));
  expect(running('api')).toHaveLength(1);
});

test('what the API and the worker tell of the data plane is what the edge does', () => {
  const told = ours.map(([, { environment }]) => configOf(environment)).map((config) => JSON.stringify(Object.entries(config).filter(([key]) => /^(?:PG_(?:GATEWAY|REGION|BACKEND|RUN|HOST_NAME)|DNS_(?!LISTEN|SNAPSHOT)|GATEWAY_(?:PUBLIC|CERT|ALLOW))/.test(key))));
  expect(new Set(told).size).toBe(1);
});

test('the head of the file names every secret and address it wants', () => {
  const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
  const head = text.slice(0, text.indexOf('\nname:'));
  expect([...text.matchAll(/\$\{(\w+):\?/g)].map(([, name = '']) => name).filter((name) => !head.includes(name))).toEqual([]);
});

test('rules and dashboard ask only for metrics there are', () => {
  const rules = z.object({ groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string(), expr: z.string() })) })) }).parse(parse(readFileSync(join(root, 'deploy/prometheus-rules.yaml'), 'utf8')));
  const dashboard = z.object({ panels: z.array(z.object({ targets: z.array(z.object({ expr: z.string() })) })) }).parse(JSON.parse(readFileSync(join(root, 'deploy/grafana-dashboard.json'), 'utf8')));
  const expressions = [...rules.groups.flatMap((group) => group.rules.map(({ expr }) => expr)), ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))];
  const { registry } = createMetrics('test');
  createPostgresGatewayMetrics(registry);
  createGatewayMetrics(registry);
  const known = new Set([...registry.getMetricsAsArray().map(({ name }) => name), 'gateway_event_batches_waiting', 'gateway_event_bytes_waiting', 'up']);
  const asked = expressions.flatMap((expr) => [...expr.matchAll(/\b([a-z][a-z_]+)(?=[[{) ]|$)/g)].map(([, name = '']) => name.replace(/_(?:bucket|count|sum)$/, ''))).filter((name) => name.includes('_') && name !== 'histogram_quantile' || name === 'up');
  expect([...new Set(asked)].filter((name) => !known.has(name))).toEqual([]);
  expect(asked.length).toBeGreaterThanOrEqual(expressions.length);
});

test('the image holds what the processes read', () => {
  const image = readFileSync(join(root, 'Dockerfile'), 'utf8');
  const copied = [...image.matchAll(/COPY --from=build \/app\/(\S+)/g)].map(([, path]) => path);
  expect(copied).toEqual(expect.arrayContaining(['node_modules', 'dist', 'prisma', configOf(ours[0]?.[1].environment).GATEWAY_RULES_DIR.split('/')[0], 'package.json']));
});

import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { address, addresses, bit, bytes, count, domainName, hints, list, nameservers, networks, onOff, port, share, targets, transferKeys } from './core/config-fields';
import { gatewayFields } from './core/config-gateway';
import { webhookSecret } from './core/webhook-signature';
import { queues } from './temporal/queues';
import { z } from 'zod';

/** Signs generic provider events in development, so that the first `curl` works; refused in production. */
export const developmentEventsSecret = 'whsec_aG9sZGZhc3QtZGV2ZWxvcG1lbnQtZXZlbnRz';
/** Signs MailerSend's test pings and stands in its documentation: everybody has it. */
const mailersendTestSecret = 'test_Am3L1GuOIc4blLUuHqAPxxwkZaJyEk8G';

export const edgeRoles = ['dns', 'gateway', 'postgres', 'postgres-host'] as const;

/**
 * The only reader of the environment. Every key has a default that works for `npm start` or is required in production;
 * the table of README is made from this schema (`npm run config:table`), so a key's one description lives here.
 */
const schema = z.object({
  HOLDFAST_MODE: z.enum(['development', 'production']).default('development').describe('production refuses development defaults; must be set on a server'),
  HOLDFAST_DATA_DIR: z.string().default('.holdfast').describe('what this installation keeps on disk'),
  HOLDFAST_INSTALLATION: z.string().regex(/^[a-z0-9]{8,32}$/).default('standalone').describe('id of this installation; `npm start` makes one per clone'),
  HOLDFAST_MASTER_KEY: z.string().optional().describe('32 bytes in base64 that seal secrets; several, comma-separated: the first seals, all open'),
  AUTH_SECRET: z.string().min(32).optional().describe('at least 32 bytes; signs session cookies and cursors'),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug']).default('info').describe('least severe level that is logged'),

  DATABASE_URL: z.string().regex(/^postgres(ql)?:\/\//, 'must be a postgresql:// URL').optional().describe('our PostgreSQL; `npm start` runs one when it is not set'),
  DATABASE_POOL_MAX: count(2, 200).default(20).describe('connections per process'),
  DATABASE_PORT: port.default(15432).describe('port of the embedded PostgreSQL'),

  TEMPORAL_ADDRESS: address.optional().describe('Temporal server; `npm start` runs one when it is not set'),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default').describe('Temporal namespace; made at start when absent'),
  TEMPORAL_BIN: z.string().optional().describe('path of the Temporal CLI for the development server'),
  TEMPORAL_PORT: port.default(7233).describe('port of the development Temporal server'),
  TEMPORAL_UI_PORT: port.default(8233).describe('port of its UI'),
  TEMPORAL_RETENTION_HOURS: count(1, 8760).default(72).describe('how long Temporal keeps finished runs'),

  API_ADDR: address.default('127.0.0.1:3000').describe('where the API listens'),
  METRICS_ADDR: address.default('127.0.0.1:9464').describe('where this process answers Prometheus'),
  PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional().describe('origin clients use; https in production'),
  TRUSTED_PROXIES: list.default([]).describe('networks whose X-Forwarded-For is believed'),
  PENDING_OPERATIONS_MAX: count(1, 10_000_000).default(100_000).describe('mail waiting for Temporal beyond which new mail is refused'),
  PENDING_OPERATIONS_AGE_SECONDS: count(1, 86_400).default(600).describe('the same, by age of the oldest'),

  WORKER_QUEUES: list.pipe(z.array(z.enum(queues)).min(1)).default([...queues]).describe('queues this worker serves'),
  WORKER_BUILD_ID: z.string().optional().describe('turns Worker Versioning on'),
  EDGE_SERVES: list.pipe(z.array(z.enum(edgeRoles)).min(1)).default([...edgeRoles]).describe('roles of this edge process'),

  SIGNUP_MODE: z.enum(['open', 'invite', 'closed']).optional().describe('who may sign up; development open, production invite'),
  ACCOUNT_MAIL: z.enum(['off', 'capture', 'transport']).optional().describe('account mail; development capture, production off until ACCOUNT_MAIL_FROM is set'),
  ACCOUNT_MAIL_FROM: z.string().optional().describe('sender of account mail'),
  ACCOUNT_SMTP_URL: z.string().regex(/^smtps?:\/\//, 'must be an smtp:// URL').default('smtp://127.0.0.1:25').describe('relay for account mail (transport)'),
  EMAIL_VERIFICATION: z.enum(['required', 'optional']).optional().describe('development optional; production required while account mail is on'),
  SESSION_IDLE_DAYS: count(1, 365).default(7).describe('a session ends after this long without use'),
  SESSION_MAX_DAYS: count(1, 365).default(30).describe('a session ends after this long'),
  SESSION_FRESH_SECONDS: count(30, 86_400).default(600).describe('how long after a password a session may reveal and delete'),
  DEMO_OWNER_EMAIL: z.email().default('owner@demo.test').describe('owner of the demo organisation (development)'),
  DEMO_OWNER_PASSWORD: z.string().min(8).max(128).optional().describe('their password; random when not set; refused in production'),

  RATE_SIGN_IN_PER_MINUTE: count(1, 10_000).default(5).describe('sign-in, re-authentication and set-up, per address and account'),
  RATE_SIGN_UP_PER_HOUR: count(1, 10_000).default(5).describe('sign-ups per address'),
  RATE_RESET_PER_HOUR: count(1, 10_000).default(3).describe('reset and verification mails per account'),
  RATE_RESET_ADDRESS_PER_HOUR: count(1, 10_000).default(10).describe('the same, per address'),
  RATE_INVITATIONS_PER_DAY: count(1, 100_000).default(50).describe('invitations per organisation'),
  RATE_MANAGEMENT_PER_5_MINUTES: count(1, 1_000_000).default(1200).describe('management requests per user'),
  RATE_REVEAL_PER_MINUTE: count(1, 10_000).default(10).describe('revealed credentials per user'),
  LIMIT_OWNED_ORGS: count(1, 10_000).default(10).describe('organisations a user may own'),
  LIMIT_PROJECTS: count(1, 10_000).default(20).describe('projects per organisation'),
  LIMIT_MEMBERS: count(1, 100_000).default(100).describe('members per organisation'),
  LIMIT_PENDING_INVITATIONS: count(1, 10_000).default(50).describe('pending invitations per organisation'),

  BILLING_PROVIDER: z.enum(['ledger']).default('ledger').describe('who collects money; ledger: nobody but us'),
  BILLING_CURRENCY: z.string().regex(/^[A-Z]{3}$/).default('USD').describe('ISO 4217'),
  LEDGER_WEBHOOK_SECRETS: list.pipe(z.array(z.string().regex(webhookSecret, 'must be whsec_ and at least 24 bytes in base64'))).default([]).describe('who may tell of payments and credits (whsec_…, comma-separated); none: nobody'),
  BILLING_TAX_PERCENT: z.string().regex(/^\d{1,3}(\.\d{1,4})?$/, 'must be a decimal, like 19 or 8.1').default('0').describe('one tax line on every invoice, in percent'),
  BILLING_MIN_INVOICE_MINOR: count(0, 1_000_000_000).default(50).describe('below this nothing is due and the sum is carried to the next invoice'),
  BILLING_GRACE_HOURS: count(0, 240).default(24).describe('how long after its end a period still takes usage'),
  BILLING_REQUIRE_PAYMENT_METHOD: onOff.default(false).describe('no paid plan without a payment method'),
  RATE_USAGE_PER_MINUTE: count(1, 1_000_000).default(60).describe('reads of usage and of the preview, each, per organisation'),
  RATE_CHANGE_PLAN_PER_HOUR: count(1, 10_000).default(10).describe('changes of plan per subscription'),
  BILLING_PLANS_FILE: z.string().optional().describe('JSON that replaces the plan catalogue'),

  DNS_LISTEN: addresses.default(['127.0.0.1:10053', '127.0.0.2:10053']).describe('where the authoritative server listens, UDP and TCP'),
  DNS_SERVERS: nameservers.prefault('127.0.0.1:10053;127.0.0.2:10053').describe('our name servers: `;` between servers, `,` between addresses; the port is for our own checks'),
  DNS_NAMESERVER_SUFFIX: domainName.default('ns.holdfast.test').describe('name servers are called <token>-<i>.<suffix>'),
  DNS_EDGE_SUFFIX: domainName.default('edge.holdfast.test').describe('targets of external zones are called <token>.<suffix>'),
  DNS_SOA_RNAME: domainName.default('hostmaster.holdfast.test').describe('mailbox in SOA records'),
  DNS_ALLOW_TEST_TLDS: bit.optional().describe('zones under test and example; development 1, production 0'),
  DNS_WORKERS: count(1, 64).default(1).describe('processes of one name server, all answering at the same addresses'),
  DNS_SNAPSHOT_FILE: z.string().optional().describe('where a name server keeps its zones, so that it can start without the database'),
  DNS_AXFR_KEYS: transferKeys.default([]).describe('who may transfer zones: TSIG keys (hmac-sha256), name:base64,…'),
  DNS_AXFR_ALLOW: networks.default([]).describe('addresses and networks that may without a key'),
  DNS_NOTIFY_TARGETS: targets.default([]).describe('secondaries told of each version, address:port,…'),
  DNS_BACKEND: z.enum(['embedded', 'powerdns']).default('embedded').describe('who answers for the zones: our own servers, or a PowerDNS that is told of every version'),
  POWERDNS_URL: z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, '')).optional().describe('HTTP API of PowerDNS 4.7 (http://host:8081); required with DNS_BACKEND powerdns'),
  POWERDNS_API_KEY: z.string().min(1).optional().describe('its api-key; required with DNS_BACKEND powerdns'),
  POWERDNS_SERVER_ID: z.string().min(1).default('localhost').describe('its server id'),
  POWERDNS_TIMEOUT_MS: count(100, 60_000).default(5000).describe('longest request to it'),
  DNS_POLL_MS: count(100, 60_000).default(1000).describe('how often a server compares its zones with the database'),
  DNS_PENDING_DAYS: count(1, 365).default(28).describe('an unproven zone is deleted after this long'),
  DNS_MOVED_DAYS: count(1, 365).default(30).describe('a zone delegated elsewhere is deleted after this long'),
  DNS_ZONE_PURGE_DAYS: count(1, 365).default(7).describe('how long a deleted zone can be restored'),
  DNS_RECORD_PURGE_DAYS: count(1, 365).default(30).describe('how long a deleted record can be restored'),
  DNS_ROOT_HINTS: hints.optional().describe('where our resolver begins (name=address,…); the root servers unless set'),
  DNS_RESOLVER_PORT: port.default(53).describe('port of every query it sends'),
  DNS_ALLOW_NON_GLOBAL: bit.default(false).describe('1: it also asks servers at private and loopback addresses'),
  DNS_TEST_SERVERS: addresses.optional().describe('addresses of a registry for development, asked for names under test; `npm start` runs one'),
  DNS_REGISTRY_PORT: port.default(10054).describe('port of the registry that `npm start` runs, on 127.0.53.1 to 127.0.53.3'),
  DNS_RRL_PER_SECOND: count(0, 1_000_000).default(200).describe('equal answers per second and network; 0: no limit'),
  DNS_RRL_EXEMPT: networks.default(['127.0.0.0/8', '::1/128']).describe('networks without that limit'),
  ...gatewayFields,

  MAIL_TRANSPORT: z.enum(['capture', 'smtp_relay', 'direct_mx', 'resend', 'mailgun']).default('capture').describe('who takes live mail'),
  MAIL_BOUNCE_DOMAIN: domainName.default('bounce.holdfast.test').describe('bounces come to this domain; its MX and SPF are yours to set; required in production'),
  MAIL_VERP_SECRET: z.string().min(32).optional().describe('at least 32 bytes; proves bounce addresses; `npm start` makes one, required in production'),
  MAIL_MAX_AGE_HOURS: count(1, 720).default(72).describe('a message not delivered after this long has failed'),
  MAIL_RETRY_SCHEDULE_SECONDS: list.transform((items) => items.map(Number)).pipe(z.array(z.number().int().min(1).max(86_400)).min(1)).prefault('60,300,900,1800,3600,7200,14400,28800').describe('waits after each attempt, ± 20 %; the last repeats'),
  MAIL_ATTEMPT_TIMEOUT_SECONDS: count(1, 600).default(90).describe('longest attempt at one recipient'),
  MAIL_API_STARTS_PER_SECOND: count(0, 10_000).default(5).describe('workflows an API process starts itself'),
  MAIL_RELAY_STARTS_PER_SECOND: count(1, 10_000).default(20).describe('workflows a worker starts for mail that waits'),
  MAIL_BATCH_SIZE: count(1, 50).default(50).describe('messages per workflow under backlog'),
  MAIL_REPUTATION_MIN_RECIPIENTS: count(1, 10_000_000).default(1_000).describe('recipients within seven days from which a sender is judged'),
  MAIL_BOUNCE_RATE_WARNING: share.default(0.02).describe('share of hard bounces that is warned of'),
  MAIL_BOUNCE_RATE_SUSPENSION: share.default(0.05).describe('… and that suspends the service'),
  MAIL_COMPLAINT_RATE_WARNING: share.default(0.001).describe('share of complaints that is warned of'),
  MAIL_COMPLAINT_RATE_SUSPENSION: share.default(0.005).describe('… and that suspends the service'),
  MAIL_CONTENT_RETENTION_DAYS: count(1, 3_650).default(30).describe('how long bodies are kept after a message has settled'),
  MAIL_HELO_NAME: domainName.optional().describe('name our SMTP clients give; the host name when not set'),
  MAIL_RELAY_URL: z.string().regex(/^smtps?:\/\//, 'must be an smtp:// URL').default('smtp://127.0.0.1:25').describe('smtp_relay: the relay, with user and password where it wants them'),
  MAIL_RELAY_CONNECTIONS: count(1, 500).default(10).describe('smtp_relay: connections per worker'),
  MAIL_RELAY_TLS: z.enum(['opportunistic', 'required', 'off']).default('opportunistic').describe('smtp_relay: STARTTLS when offered, always with a checked certificate, or never'),
  MAIL_MX_PORT: port.default(25).describe('direct_mx: port of mail exchangers'),
  MAIL_MX_CONNECTIONS_PER_DOMAIN: count(1, 100).default(5).describe('direct_mx: connections per recipient domain and worker'),
  MAIL_MX_ALLOW_PRIVATE: bit.optional().describe('direct_mx: exchangers at private and loopback addresses; development 1, production 0'),
  MAIL_RESEND_API_KEY: z.string().default('').describe('resend: API key'),
  MAIL_RESEND_BASE_URL: z.url({ protocol: /^https?$/ }).default('https://api.resend.com').describe('resend: its API'),
  MAIL_MAILGUN_API_KEY: z.string().default('').describe('mailgun: API key'),
  MAIL_MAILGUN_BASE_URL: z.url({ protocol: /^https?$/ }).default('https://api.mailgun.net').describe('mailgun: its API'),
  MAIL_MAILGUN_DOMAIN: domainName.optional().describe("mailgun: domain to send through; the sender's when not set"),
  MAIL_EVENTS_GENERIC_SECRETS: list.pipe(z.array(z.string().regex(webhookSecret, 'must be whsec_ and at least 24 bytes in base64'))).optional().describe('generic provider events (whsec_…, comma-separated); development has one, printed at start'),
  MAIL_EVENTS_RESEND_SECRETS: list.pipe(z.array(z.string().regex(webhookSecret, 'must be whsec_ and at least 24 bytes in base64'))).default([]).describe('signing secrets of Resend webhooks; none: 404'),
  MAIL_EVENTS_MAILGUN_SECRETS: list.default([]).describe('webhook signing keys of Mailgun; none: 404'),
  MAIL_EVENTS_MAILERSEND_SECRETS: list.refine((secrets) => !secrets.includes(mailersendTestSecret), "must not hold MailerSend's public test secret").default([]).describe('signing secrets of MailerSend webhooks; none: 404'),
  MAIL_INBOUND_ENABLED: bit.optional().describe('the worker takes bounces and complaints over SMTP; development 1, production 0'),
  MAIL_INBOUND_HOST: z.union([z.ipv4(), z.ipv6()]).default('127.0.0.1').describe('where it listens'),
  MAIL_INBOUND_PORT: port.default(2525).describe('its port'),
  MAIL_WEBHOOK_ALLOW_PRIVATE: bit.optional().describe("customers' webhooks over http and at private addresses; development 1, production 0"),

  PG_BACKEND: z.enum(['embedded', 'host_pool']).default('embedded').describe('where new Postgres services live: servers of their own here, or databases on registered servers'),
  PG_HOSTS_FILE: z.string().optional().describe('registered PostgreSQL servers for host_pool (JSON; docs/operating.md); read when a worker starts'),
  PG_HOST_NAME: z.string().optional().describe('name of this instance host; the host name when not set'),
  PG_REGION: z.string().regex(/^[a-z0-9-]{1,40}$/).default('local').describe('region of this instance host'),
  PG_DATA_DIR: z.string().optional().describe('instances, backups and binaries; see docs/postgres.md for the default'),
  PG_BACKUP_DIR: z.string().optional().describe('base backups and archived WAL; default: backups below PG_DATA_DIR'),
  PG_RUN_DIR: z.string().optional().describe('sockets; default /run/holdfast-<installation> as root, else under /tmp'),
  PG_INITDB_USER: z.string().optional().describe('user for initdb as root; default: first of holdfast, postgres, nobody'),
  PG_PORT_BASE: port.default(20000).describe('first instance port'),
  PG_UID_BASE: z.coerce.number().int().min(1000).default(200000).describe('first instance uid (as root)'),
  PG_HOST_SLOTS: count(1, 40_000).default(2000).describe('instances this host may run'),
  PG_POOL_PREPARED: count(0, 100).default(2).describe('initialised directories kept ready'),
  PG_POOL_RUNNING: z.string().regex(/^(?:(?:trial|starter|launch|growth|business):\d{1,2}(?:,|$))*$/, 'must be plan:count,…').default('trial:1,starter:1').describe('running instances kept ready, per plan'),
  PG_CAPACITY_BYTES: bytes.optional().describe('bytes this host may promise; default 80 % of its file system'),
  PG_RESERVE_BYTES: bytes.default(1_073_741_824).describe('below this much free space nothing is placed'),
  PG_STOP_ON_EXIT: onOff.optional().describe('stop instances with the host process; development on'),
  PG_GATEWAY_ADDR: addresses.default(['127.0.0.1:6432', '[::1]:6432']).describe('where the Postgres gateway listens'),
  PG_GATEWAY_DOMAIN: z.string().optional().describe('hosts become pg-….<region>.<domain>; unset: localhost'),
  PG_GATEWAY_TLS: z.enum(['required', 'optional']).optional().describe('optional is for loopback only; development optional'),
  PG_GATEWAY_CERT_FILE: z.string().optional().describe("the operator's certificate for the Postgres gateway"),
  PG_GATEWAY_KEY_FILE: z.string().optional().describe('its key'),
});

type Parsed = z.infer<typeof schema>;
/** What the mode decides is settled here once, so nobody else asks for the mode. */
export type Config = Omit<Parsed, 'HOLDFAST_MASTER_KEY' | SettledKey> & Required<{ [K in SettledKey]: Exclude<Parsed[K], undefined> }> & {
  HOLDFAST_MASTER_KEY: readonly string[];
};
type SettledKey = 'AUTH_SECRET' | 'DATABASE_URL' | 'TEMPORAL_ADDRESS' | 'PUBLIC_URL' | 'SIGNUP_MODE' | 'ACCOUNT_MAIL' | 'ACCOUNT_MAIL_FROM'
  | 'EMAIL_VERIFICATION' | 'DNS_ALLOW_TEST_TLDS' | 'POWERDNS_URL' | 'POWERDNS_API_KEY' | 'GATEWAY_ALLOW_PRIVATE_ORIGINS' | 'GATEWAY_PUBLIC_ADDRESSES' | 'GATEWAY_SPOOL_DIR' | 'GATEWAY_SNAPSHOT_DIR' | 'MAIL_VERP_SECRET' | 'MAIL_WEBHOOK_ALLOW_PRIVATE' | 'MAIL_HELO_NAME' | 'MAIL_MX_ALLOW_PRIVATE'
  | 'MAIL_EVENTS_GENERIC_SECRETS' | 'MAIL_INBOUND_ENABLED' | 'PG_STOP_ON_EXIT' | 'PG_GATEWAY_TLS' | 'PG_HOST_NAME';

/** Reported in full, so one start shows everything that is wrong. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly faults: readonly { key: string; message: string }[]) {
    super(`The configuration has ${faults.length} fault(s):\n${faults.map((f) => `  ${f.key}: ${f.message}`).join('\n')}\nSee the configuration table in README.md.`);
  }
}

/** What the supervisor reads before it has made the rest. */
export type SupervisorConfig = Parsed;

/**
 * For `npm start`: every key that is given is checked, none is required; `given` goes on to the processes it starts.
 * Errors: ConfigError naming every bad key, and HOLDFAST_MODE=production.
 */
export function loadSupervisorConfig(env: Readonly<Record<string, string | undefined>> = process.env): { config: SupervisorConfig; given: Record<string, string> } {
  const given = givenOf(env);
  const result = schema.safeParse(given);
  const faults = result.success ? [] : result.error.issues.map((issue) => ({ key: issue.path.join('.'), message: issue.message }));
  if (given['HOLDFAST_MODE'] === 'production') faults.push({ key: 'HOLDFAST_MODE', message: 'production is run without `npm start`; see docs/operating.md' });
  if (!result.success || faults.length > 0) throw new ConfigError(faults);
  return { config: result.data, given };
}

/** Errors: ConfigError naming every bad and every missing key. Empty values count as not set. */
export function loadConfig(env: Readonly<Record<string, string | undefined>> = process.env): Config {
  const given = givenOf(env);
  const result = schema.safeParse(given);
  const faults = result.success ? [] : result.error.issues.map((issue) => ({ key: issue.path.join('.'), message: issue.message }));
  const bad = new Set(faults.map((fault) => fault.key.split('.')[0]));
  if (given['HOLDFAST_MODE'] === 'production') faults.push(...productionFaults(given).filter((fault) => !bad.has(fault.key)));
  else faults.push(...['HOLDFAST_MASTER_KEY', 'AUTH_SECRET', 'DATABASE_URL', 'TEMPORAL_ADDRESS'].filter((key) => !given[key] && !bad.has(key))
    .map((key) => ({ key, message: 'is not set; `npm start` sets it in development' })));
  if (result.success && result.data.MAIL_TRANSPORT === 'resend' && result.data.MAIL_RESEND_API_KEY === '') faults.push({ key: 'MAIL_RESEND_API_KEY', message: 'is required by MAIL_TRANSPORT=resend' });
  if (result.success && result.data.MAIL_TRANSPORT === 'mailgun' && result.data.MAIL_MAILGUN_API_KEY === '') faults.push({ key: 'MAIL_MAILGUN_API_KEY', message: 'is required by MAIL_TRANSPORT=mailgun' });
  if (given['GATEWAY_CERT_ISSUER'] === 'acme') faults.push(...['ACME_DIRECTORY_URL', 'ACME_EMAIL'].filter((key) => !given[key]).map((key) => ({ key, message: 'is required with GATEWAY_CERT_ISSUER acme' })));
  if (given['DNS_BACKEND'] === 'powerdns') faults.push(...['POWERDNS_URL', 'POWERDNS_API_KEY'].filter((key) => !given[key]).map((key) => ({ key, message: 'is required with DNS_BACKEND powerdns' })));
  if (!result.success || faults.length > 0) throw new ConfigError(faults);
  return settle(result.data);
}

function givenOf(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).flatMap(([key, value]) => (value ? [[key, value]] : [])));
}

/** Name and description of every key with its default, for the table in README.md. */
export function configTable(): { key: string; default: string; description: string }[] {
  return Object.entries(schema.shape).map(([key, field]) => ({ key, default: defaultText(field), description: field.description ?? '' }));
}

function defaultText(field: z.ZodType): string {
  if (!(field instanceof z.ZodDefault) && !(field instanceof z.ZodPrefault)) return '';
  const value: unknown = field.def.defaultValue;
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return Array.isArray(value) ? value.join(',') : String(value);
}

function productionFaults(given: Readonly<Record<string, string | undefined>>): { key: string; message: string }[] {
  const faults = ['HOLDFAST_MASTER_KEY', 'AUTH_SECRET', 'DATABASE_URL', 'TEMPORAL_ADDRESS', 'PUBLIC_URL', 'MAIL_BOUNCE_DOMAIN', 'MAIL_VERP_SECRET']
    .filter((key) => !given[key]).map((key) => ({ key, message: 'is required in production' }));
  if (given['PUBLIC_URL'] && !given['PUBLIC_URL'].startsWith('https://')) faults.push({ key: 'PUBLIC_URL', message: 'must be https in production' });
  faults.push(...Object.entries(given).filter(([key, value]) => key in schema.shape && value?.includes(developmentEventsSecret) === true).map(([key]) => ({ key, message: 'holds the secret of development' })));
  if (given['DEMO_OWNER_PASSWORD']) faults.push({ key: 'DEMO_OWNER_PASSWORD', message: 'is for development only' });
  return faults;
}

function settle(parsed: Parsed): Config {
  const development = parsed.HOLDFAST_MODE === 'development';
  const accountMail = parsed.ACCOUNT_MAIL ?? (development ? 'capture' : parsed.ACCOUNT_MAIL_FROM ? 'transport' : 'off');
  return {
    ...parsed,
    HOLDFAST_MASTER_KEY: (parsed.HOLDFAST_MASTER_KEY ?? '').split(','),
    AUTH_SECRET: parsed.AUTH_SECRET ?? '',
    DATABASE_URL: parsed.DATABASE_URL ?? '',
    TEMPORAL_ADDRESS: parsed.TEMPORAL_ADDRESS ?? '',
    PUBLIC_URL: parsed.PUBLIC_URL ?? `http://${parsed.API_ADDR}`,
    SIGNUP_MODE: parsed.SIGNUP_MODE ?? (development ? 'open' : 'invite'),
    ACCOUNT_MAIL: accountMail,
    ACCOUNT_MAIL_FROM: parsed.ACCOUNT_MAIL_FROM ?? 'Holdfast <accounts@holdfast.test>',
    EMAIL_VERIFICATION: parsed.EMAIL_VERIFICATION ?? (development || accountMail === 'off' ? 'optional' : 'required'),
    DNS_ALLOW_TEST_TLDS: parsed.DNS_ALLOW_TEST_TLDS ?? development,
    GATEWAY_ALLOW_PRIVATE_ORIGINS: parsed.GATEWAY_ALLOW_PRIVATE_ORIGINS ?? (development ? ['127.0.0.0/8', '::1/128'] : []),
    GATEWAY_SPOOL_DIR: parsed.GATEWAY_SPOOL_DIR ?? join(parsed.HOLDFAST_DATA_DIR, 'gateway'),
    GATEWAY_SNAPSHOT_DIR: parsed.GATEWAY_SNAPSHOT_DIR ?? join(parsed.HOLDFAST_DATA_DIR, 'gateway'),
    POWERDNS_URL: parsed.POWERDNS_URL ?? '',
    POWERDNS_API_KEY: parsed.POWERDNS_API_KEY ?? '',
    GATEWAY_PUBLIC_ADDRESSES: parsed.GATEWAY_PUBLIC_ADDRESSES ?? (development ? ['127.0.0.1'] : []),
    MAIL_VERP_SECRET: parsed.MAIL_VERP_SECRET ?? createHash('sha256').update('mail-verp').update(parsed.AUTH_SECRET ?? '').digest('base64url'),
    MAIL_WEBHOOK_ALLOW_PRIVATE: parsed.MAIL_WEBHOOK_ALLOW_PRIVATE ?? development,
    MAIL_HELO_NAME: parsed.MAIL_HELO_NAME ?? hostname(),
    MAIL_MX_ALLOW_PRIVATE: parsed.MAIL_MX_ALLOW_PRIVATE ?? development,
    MAIL_EVENTS_GENERIC_SECRETS: parsed.MAIL_EVENTS_GENERIC_SECRETS ?? (development ? [developmentEventsSecret] : []),
    MAIL_INBOUND_ENABLED: parsed.MAIL_INBOUND_ENABLED ?? development,
    PG_STOP_ON_EXIT: parsed.PG_STOP_ON_EXIT ?? development,
    PG_GATEWAY_TLS: parsed.PG_GATEWAY_TLS ?? (development ? 'optional' : 'required'),
    PG_HOST_NAME: parsed.PG_HOST_NAME ?? hostname(),
  };
}

import type { Server } from 'node:http';
import { pino } from 'pino';
import { ensureCatalogue } from '../../src/billing/catalogue';
import type { Config } from '../../src/config';
import { systemClock } from '../../src/core/clock';
import { Cursors } from '../../src/core/cursor';
import type { Role } from '../../src/core/caller';
import { newId } from '../../src/core/ids';
import { Secrets } from '../../src/core/secrets';
import type { Database } from '../../src/db/client';
import { trustedProxies } from '../../src/http/client-address';
import { createLimiter } from '../../src/http/rate-limit';
import { createApp, createHttpServer } from '../../src/http/server';
import { identityOperations, type IdentityDeps } from '../../src/identity/operations';
import { checkApiKey, createEngine, getMail, composeMail, readSession, recordDenial, type ProductDeletion } from '../../src/identity/service';
import type { OperationRow } from '../../src/operations/store';
import { withDatabase } from './database';
import { masterKey, testConfig } from './postgres-api';

export type Answer = { status: number; headers: Headers; body: Record<string, unknown>; cookie: string | null };
export type Request = { cookie?: string | null | undefined; body?: unknown; headers?: Record<string, string> };
export type Person = { email: string; password: string; userId: string; cookie: string; displayName: string };

export interface IdentityApi {
  readonly database: Database;
  readonly deps: IdentityDeps;
  readonly config: Config;
  readonly origin: string;
  /** What would have been started in Temporal. */
  readonly started: OperationRow[];
  readonly mails: string[];
  ask(method: string, path: string, request?: Request): Promise<Answer>;
  /** Signs up somebody new, from an address of their own. */
  person(displayName?: string): Promise<Person>;
  /** An organisation of that person. */
  org(owner: Person, displayName?: string): Promise<{ orgId: string; slug: string; path: string; projectId: string }>;
  /** A member of it. */
  member(org: { orgId: string }, role: Role): Promise<Person>;
  /** The token in the newest account mail to the address. */
  mailedToken(email: string): Promise<string>;
}

const password = 'a good long passphrase';
let lastAddress = 0;

/** A client address nobody used before: limits of one test do not meet another's. */
export function newAddress(): string {
  lastAddress += 1;
  return `10.${(lastAddress >> 16) & 255}.${(lastAddress >> 8) & 255}.${lastAddress & 255}`;
}

/** The real application with the operations of identity on a database of its own; Temporal is a list of what was started. */
export function withIdentityApi(env: Record<string, string> = {}, productDeletions: readonly ProductDeletion[] = []): IdentityApi {
  const test = withDatabase();
  const started: OperationRow[] = [];
  const mails: string[] = [];
  let made: { server: Server; origin: string; deps: ReturnType<typeof testDeps> } | undefined;
  const need = () => {
    if (!made) throw new Error('The API exists from beforeAll on.');
    return made;
  };
  beforeAll(async () => {
    const config = testConfig(test.url, { TRUSTED_PROXIES: '127.0.0.1', ...env });
    await ensureCatalogue(test.database, config);
    const deps = testDeps(test.database, config, { started, mails, productDeletions });
    const server = createHttpServer(createApp(deps, identityOperations));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const address = server.address();
    made = { server, deps, origin: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}` };
  });
  afterAll(() => new Promise<void>((done) => {
    made?.server.closeAllConnections();
    if (made) made.server.close(() => done());
    else done();
  }));

  const ask: IdentityApi['ask'] = async (method, path, { cookie, body, headers = {} } = {}) => {
    const response = await fetch(`${need().origin}/v1${path}`, {
      method,
      headers: { 'x-forwarded-for': newAddress(), ...(cookie ? { cookie } : {}), ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
    });
    const [setCookie] = response.headers.getSetCookie();
    return { status: response.status, headers: response.headers, body: toObject(await response.text()), cookie: setCookie?.split(';')[0] ?? null };
  };
  const api: IdentityApi = {
    started, mails, ask,
    get database() { return test.database; },
    get deps() { return need().deps; },
    get config() { return need().deps.config; },
    get origin() { return need().origin; },
    async person(displayName = 'Ann') {
      const email = `${newId('usr')}@people.test`;
      const answer = await ask('POST', '/api/auth/sign-up', { body: { email, displayName, password } });
      return { email, password, displayName, userId: idIn(answer.body['user']), cookie: cookieOf(answer) };
    },
    async org(owner, displayName = 'Acme') {
      const { body } = await ask('POST', '/api/orgs', { cookie: owner.cookie, body: { displayName } });
      const slug = String(field(body['org'], 'slug'));
      return { orgId: idIn(body['org']), slug, path: `/api/orgs/${slug}`, projectId: idIn(body['project']) };
    },
    async member({ orgId }, role) {
      const person = await api.person(role);
      await test.database.pool.query('insert into member (id, "organizationId", "userId", role) values ($1, $2, $3, $4)', [newId('usr'), orgId, person.userId, role]);
      return person;
    },
    async mailedToken(email) {
      const { rows } = await test.database.pool.query<{ id: string }>(`select id from account_mail where recipient = $1 and sealed_link is not null order by id desc limit 1`, [email]);
      const row = await getMail(test.database.prisma, rows[0]?.id ?? '');
      const url = row && /https?:\S+/.exec(composeMail(need().deps.secrets, row).text)?.[0];
      return new URL(url ?? '').searchParams.get('token') ?? '';
    },
  };
  return api;
}

function testDeps(db: Database, config: Config, world: { started: OperationRow[]; mails: string[]; productDeletions: readonly ProductDeletion[] }) {
  const engine = createEngine(db, config);
  return {
    db, config, engine, clock: systemClock, log: pino({ level: process.env['TEST_LOG'] ?? 'silent' }), secrets: new Secrets([masterKey]), cursors: new Cursors(config.AUTH_SECRET),
    limiter: createLimiter(db), managementRate: { name: 'management', limit: 1_000_000, periodSeconds: 300 },
    trustedProxies: trustedProxies(config.TRUSTED_PROXIES),
    authenticator: {
      readSession: (cookie: string | undefined, slugs: { orgSlug?: string; projectSlug?: string }) => readSession({ db, engine, config }, cookie, slugs),
      checkApiKey: (authorization: string | undefined) => checkApiKey({ db }, authorization),
    },
    recordDenial: (denial: Omit<Parameters<typeof recordDenial>[1], 'target'>) => recordDenial(db, { ...denial, target: null }),
    dispatcher: { start: async (operation: OperationRow) => void world.started.push(operation) },
    productDeletions: world.productDeletions,
    startAccountMail: (mailId: string) => void world.mails.push(mailId),
  };
}

/** A member of an object that was read from JSON. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

export function idIn(value: unknown): string {
  const id = field(value, 'id');
  if (typeof id !== 'string') throw new Error(`no id in ${JSON.stringify(value)}`);
  return id;
}

export function cookieOf(answer: Answer): string {
  if (!answer.cookie) throw new Error(`no cookie with ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.cookie;
}

function toObject(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) throw new Error(`not an object: ${text}`);
  return { ...value };
}

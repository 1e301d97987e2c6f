import { Cursors } from '../../src/core/cursor';
import { AppError, notFound } from '../../src/core/errors';
import { newId } from '../../src/core/ids';
import type { Log } from '../../src/core/log';
import type { Database } from '../../src/db/client';
import type { ReadSession } from '../../src/http/authenticate';
import { trustedProxies } from '../../src/http/client-address';
import type { Operation } from '../../src/http/operation';
import { createLimiter } from '../../src/http/rate-limit';
import type { FrameDeps } from '../../src/http/frame';
import { createApp } from '../../src/http/server';
import type { Role, Scope } from '../../src/core/caller';
import { withDatabase } from './database';
import { send, serveApp, type Answer, type Ask } from './http';

export interface FrameTestDeps extends FrameDeps {
  readonly cursors: Cursors;
  /** What each handler left for the test to look at. */
  readonly seen: unknown[];
}

export interface Frame {
  ask(method: string, path: string, ask?: Ask): Promise<Answer>;
  readonly database: Database;
  readonly deps: FrameTestDeps;
  readonly port: number;
  /** Everything that was logged, one object per line. */
  readonly logged: unknown[];
}

/**
 * The frame of the API around a few operations of the test, on a real database. Only who somebody is comes from a made-up
 * authenticator: the header `cookie: as=<name>[,<role>][,fresh]` is a session, `authorization: Bearer <scope>` a key.
 * Organisations of the path that begin with `foreign` are somebody else's.
 */
export function withFrame(operations: (deps: FrameTestDeps) => readonly Operation<FrameTestDeps>[], change: Partial<FrameTestDeps> = {}): Frame {
  const migrated = withDatabase();
  const logged: unknown[] = [];
  let served: Awaited<ReturnType<typeof serveApp>> | undefined;
  let deps: FrameTestDeps | undefined;
  beforeAll(async () => {
    deps = { ...frameDeps(migrated.database, logged), ...change };
    served = await serveApp(createApp(deps, operations(deps)));
  });
  afterAll(() => served?.stop());
  const running = () => {
    if (!served || !deps) throw new Error('The frame exists from beforeAll on.');
    return { served, deps };
  };
  return {
    ask: (method, path, ask) => send(running().served.port, method, path, ask),
    logged,
    get port() { return running().served.port; },
    get deps() { return running().deps; },
    get database() { return migrated.database; },
  };
}

function frameDeps(db: Database, logged: unknown[]): FrameTestDeps {
  const write = (level: string) => (facts: unknown, message: unknown) => void logged.push({ level, facts, message });
  const log = { info: write('info'), warn: write('warn'), error: write('error'), debug: write('debug'), fatal: write('fatal') } as unknown as Log;
  return {
    db, log,
    clock: { now: () => new Date() },
    cursors: new Cursors('the secret of the cursors of this test'),
    seen: [],
    limiter: createLimiter(db),
    managementRate: { name: 'management', limit: 100_000, periodSeconds: 300 },
    trustedProxies: trustedProxies([]),
    dispatcher: { start: async () => 'left' },
    recordDenial: async () => undefined,
    authenticator: { readSession: async (cookie, slugs) => session(cookie, slugs), checkApiKey: async (header) => apiKey(header) },
  };
}

const ids = new Map<string, string>();
function idOf<P extends 'usr' | 'org' | 'prj' | 'key' | 'ses' | 'mls'>(prefix: P, name: string): `${P}_${string}` {
  const id = ids.get(prefix + name) ?? newId(prefix);
  ids.set(prefix + name, id);
  return id as `${P}_${string}`;
}

function session(cookie: string | undefined, { orgSlug, projectSlug }: { orgSlug?: string; projectSlug?: string }): ReadSession {
  const [name, ...traits] = /as=([\w,]+)/.exec(cookie ?? '')?.[1]?.split(',') ?? [];
  if (name === undefined) throw new AppError('unauthenticated', 'Sign in first.');
  const person = {
    kind: 'user' as const, userId: idOf('usr', name), sessionId: idOf('ses', name), email: `${name}@holdfast.test`, displayName: name,
    freshUntil: traits.includes('fresh') ? new Date(Date.now() + 60_000) : null,
  };
  if (orgSlug === undefined) return { caller: person, setCookies: [] };
  if (orgSlug.startsWith('foreign')) throw notFound('Organisation');
  const role = traits.find((trait): trait is Role => ['viewer', 'member', 'admin', 'owner'].includes(trait)) ?? 'owner';
  const org = { id: idOf('org', orgSlug), slug: orgSlug, displayName: orgSlug, status: 'active' as const };
  if (projectSlug === undefined) return { caller: { ...person, org, role }, setCookies: [] };
  return { caller: { ...person, org, role, project: { id: idOf('prj', projectSlug), slug: projectSlug, displayName: projectSlug, status: 'active' } }, setCookies: [] };
}

function apiKey(header: string | undefined) {
  const scope = /^Bearer (.+)$/.exec(header ?? '')?.[1];
  if (scope === undefined || !scope.includes(':')) throw new AppError('invalid_api_key', 'The API key is not valid.');
  return { kind: 'apiKey' as const, keyId: idOf('key', scope), name: scope, scopes: [scope as Scope], mode: 'live' as const, allowedDomains: [], serviceId: idOf('mls', 'x'), serviceStatus: 'active' as const, sendsPerSecond: 10, orgId: idOf('org', 'key'), projectId: idOf('prj', 'key') };
}

import { randomBytes, randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { runWithTransaction } from '@better-auth/core/context';
import { APIError, betterAuth, type Auth, type BetterAuthOptions } from 'better-auth';
import { prismaAdapter } from 'better-auth/adapters/prisma';
import { organization } from 'better-auth/plugins/organization';
import { createAccessControl } from 'better-auth/plugins/access';
import type { Config } from '../config';
import { isId, newId, type Id } from '../core/ids';
import { Semaphore } from '../core/keyed-queue';
import type { Database } from '../db/client';
import { PrismaOnTransaction } from '../db/prisma-on-transaction';
import type { Tx } from '../db/transaction';
import { sessionCookieName } from './cookie';

/**
 * The only importer of better-auth 1.7.5. Its HTTP handler is not mounted and none of its words reaches a client.
 * Whatever writes takes our transaction and commits with it; hashing happens before one is begun, so that no connection
 * waits for scrypt (docs/decisions/0020).
 */
export type EngineConfig = Pick<Config, 'AUTH_SECRET' | 'PUBLIC_URL' | 'SESSION_IDLE_DAYS'>;
export type TokenPurpose = 'verify-email' | 'reset-password';
export type NewSession = { id: Id<'ses'>; token: string };
export type Engine = ReturnType<typeof createEngine>;

const hourSeconds = 3_600;

/** The engine's options, exported for the guard test: what defaults to weaker values under test is set here. */
export function engineOptions(database: Database, config: EngineConfig) {
  const ac = createAccessControl({ organization: ['update', 'delete'], member: ['create', 'update', 'delete'], invitation: ['create', 'cancel'], ac: ['read'] });
  const nothing = ac.newRole({ organization: [] });
  return {
    appName: 'Holdfast',
    baseURL: config.PUBLIC_URL,
    secret: config.AUTH_SECRET,
    database: prismaAdapter(database.prisma, { provider: 'postgresql' }),
    emailAndPassword: { enabled: true, minPasswordLength: 8, maxPasswordLength: 128, revokeSessionsOnPasswordReset: true },
    session: { expiresIn: config.SESSION_IDLE_DAYS * 24 * hourSeconds, updateAge: hourSeconds },
    verification: { storeIdentifier: 'hashed' },
    rateLimit: { enabled: true },
    telemetry: { enabled: false },
    logger: { disabled: true },
    advanced: {
      disableOriginCheck: false,
      disableCSRFCheck: false,
      useSecureCookies: false, // would prefix the name with __Secure-; the attributes below are what counts
      cookies: { session_token: { name: sessionCookieName, attributes: { secure: true, httpOnly: true, sameSite: 'lax', path: '/' } } },
      database: { generateId: ({ model }) => engineId(model) },
    },
    plugins: [organization({
      ac,
      // Our permissions decide (permissions.ts): to the engine only the owner may do anything.
      roles: { viewer: nothing, member: nothing, admin: nothing, owner: ac.newRole({ organization: ['update', 'delete'], member: ['create', 'update', 'delete'], invitation: ['create', 'cancel'] }) },
      creatorRole: 'owner',
      cancelPendingInvitationsOnReInvite: true,
      requireEmailVerificationOnInvitation: false, // the mailed token is the proof
      invitationExpiresIn: 7 * 24 * hourSeconds,
    })],
  } satisfies BetterAuthOptions;
}

export function createEngine(database: Database, config: EngineConfig) {
  const options = engineOptions(database, config);
  const auth = betterAuth(options);
  const context = auth.$context;
  const clients = new PrismaOnTransaction();

  async function joined<T>(tx: Tx, work: (adapter: InternalAdapter) => Promise<T>): Promise<T> {
    const { adapter, internalAdapter } = await context;
    return clients.lend(tx, (client) => {
      const ours = prismaAdapter(client, { provider: 'postgresql' })(options);
      return runWithTransaction({ ...adapter, transaction: (run) => run(ours) }, () => work(internalAdapter));
    });
  }

  return {
    options,
    ...passwordCalls(context),
    ...accountCalls(joined),
    ...tokenCalls(joined),

    /** The organisation with its first owner. The caller has made sure that the slug is free and holds its lock. */
    async createOrganization(tx: Tx, org: { ownerId: Id<'usr'>; displayName: string; slug: string }): Promise<Id<'org'>> {
      const created = await joined(tx, () => auth.api.createOrganization({ body: { userId: org.ownerId, name: org.displayName, slug: org.slug } }));
      return known('org', created.id);
    },

    /** The engine's own verdict about a cookie value; renews a session not seen for an hour. Null: no such session. */
    async getSession(cookieValue: string): Promise<{ sessionId: string; userId: string; setCookies: string[] } | null> {
      const headers = new Headers({ cookie: `${sessionCookieName}=${cookieValue}` });
      const answer = await auth.api.getSession({ headers, returnHeaders: true }).catch((error: unknown) => {
        if (error instanceof APIError && error.statusCode === 401) return null; // ended while it was being renewed
        throw error;
      });
      if (!answer?.response) return null;
      return { sessionId: answer.response.session.id, userId: answer.response.user.id, setCookies: answer.headers.getSetCookie() };
    },
  };
}

type Context = Awaited<Auth['$context']>;
type InternalAdapter = Context['internalAdapter'];
type Joined = <T>(tx: Tx, work: (adapter: InternalAdapter) => Promise<T>) => Promise<T>;

/** scrypt keeps a core and a thread of Node's pool busy: one of each is left to everybody else (docs/decisions/0022). */
const hashers = new Semaphore(Math.max(1, availableParallelism() - 1));

function passwordCalls(context: Promise<{ password: Pick<Context['password'], 'hash' | 'verify'>; internalAdapter: InternalAdapter }>) {
  return {
    async hashPassword(password: string): Promise<string> {
      const { password: hashing } = await context;
      return hashers.run(() => hashing.hash(password));
    },

    /** The user and the hash that matched; null for an unknown address and a wrong password, after the same work. */
    async verifyPassword(email: string, password: string): Promise<{ userId: Id<'usr'>; hash: string } | null> {
      const { internalAdapter, password: hashing } = await context;
      const found = await internalAdapter.findUserByEmail(email, { includeAccounts: true });
      const hash = found?.accounts.find((account) => account.providerId === 'credential')?.password;
      if (!found || !hash) {
        await hashers.run(() => hashing.hash(password));
        return null;
      }
      return await hashers.run(() => hashing.verify({ hash, password })) ? { userId: known('usr', found.user.id), hash } : null;
    },
  };
}

function accountCalls(joined: Joined) {
  return {
    /** Errors: unique violation for a known address. */
    createUser(tx: Tx, user: { email: string; displayName: string; passwordHash: string; emailVerified: boolean }): Promise<Id<'usr'>> {
      return joined(tx, async (adapter) => {
        const { id } = await adapter.createUser({ email: user.email, name: user.displayName, emailVerified: user.emailVerified }, { method: 'email-password' });
        await adapter.linkAccount({ userId: id, providerId: 'credential', accountId: id, password: user.passwordHash });
        return known('usr', id);
      });
    },

    createSession(tx: Tx, userId: Id<'usr'>, from: { ip: string; userAgent: string | null }): Promise<NewSession> {
      return joined(tx, async (adapter) => {
        const session = await adapter.createSession(userId, false, { ipAddress: from.ip, userAgent: (from.userAgent ?? '').slice(0, 200) });
        return { id: known('ses', session.id), token: session.token };
      });
    },

    setPassword: (tx: Tx, userId: Id<'usr'>, passwordHash: string): Promise<void> => joined(tx, (adapter) => adapter.updatePassword(userId, passwordHash)),
    endAllSessions: (tx: Tx, userId: Id<'usr'>): Promise<void> => joined(tx, (adapter) => adapter.deleteUserSessions(userId)),
  };
}

function tokenCalls(joined: Joined) {
  return {
    /** A single-use token of 32 random bytes; stored hashed. One for nobody costs the same and opens nothing. */
    async issueToken(tx: Tx, purpose: TokenPurpose, userId: Id<'usr'> | 'nobody', ttlSeconds: number): Promise<string> {
      const token = randomBytes(32).toString('base64url');
      const expiresAt = new Date(Date.now() + ttlSeconds * 1_000);
      await joined(tx, (adapter) => adapter.createVerificationValue({ identifier: `${purpose}:${token}`, value: userId, expiresAt }));
      return token;
    },

    /** Whom the token was issued to, once; null for an unknown, used or expired one. */
    async consumeToken(tx: Tx, purpose: TokenPurpose, token: string): Promise<Id<'usr'> | null> {
      const found = await joined(tx, (adapter) => adapter.consumeVerificationValue(`${purpose}:${token}`));
      return found && isId('usr', found.value) ? found.value : null;
    },
  };
}

function engineId(model: string): string {
  switch (model) {
    case 'user': return newId('usr');
    case 'session': return newId('ses');
    case 'organization': return newId('org');
    case 'invitation': return newId('inv');
    default: return randomUUID(); // account, member, verification: no client sees these
  }
}

function known<P extends 'usr' | 'ses' | 'org'>(prefix: P, id: string): Id<P> {
  if (!isId(prefix, id)) throw new Error(`The engine answered with a foreign ${prefix} id.`);
  return id;
}

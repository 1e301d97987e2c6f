import { randomBytes } from 'node:crypto';
import { systemCause } from '../core/caller';
import { AppError, notFound } from '../core/errors';
import { Semaphore } from '../core/keyed-queue';
import { digest } from '../core/secrets';
import { execute, rows, type Db } from '../db/client';
import { violates } from '../db/errors';
import { inTransaction, type Tx } from '../db/transaction';
import { beginSession, type Asked } from './accounts';
import type { IdentityDeps } from './deps';
import { createOrg } from './orgs';
import type { OrgRow, ProjectRow } from './store/orgs';
import { getUser, type UserRow } from './store/users';

export type FirstOwner = { email: string; displayName: string; password: string };
export type SetUp = FirstOwner & { token: string; orgDisplayName: string; orgSlug?: string | undefined };

const setupTokenHours = 24;

/**
 * The first account with its organisation and project, once; every setup token is void afterwards.
 * Errors: `not_found` once set up, `invalid_credentials` for a token that is not valid.
 */
export function setUp(deps: IdentityDeps, asked: Asked, given: SetUp): Promise<Made> {
  return turns.run(() => setUpOnce(deps, asked, given));
}

/** One after another in this process: who comes second hashes nothing and holds no connection while it waits. */
const turns = new Semaphore(1);

type Made = { user: UserRow; org: OrgRow; project: ProjectRow; cookie: string };

async function setUpOnce(deps: IdentityDeps, asked: Asked, given: SetUp): Promise<Made> {
  await requireToken(deps.db.prisma, given.token); // before anything is hashed
  const passwordHash = await deps.engine.hashPassword(given.password);
  try {
    return await inTransaction(deps.db, async (tx) => {
      await lockInstallation(tx);
      await requireToken(tx, given.token);
      await execute(tx, 'update installation set set_up_at = now()');
      await execute(tx, 'delete from setup_token');
      const user = await createOwner(deps, tx, given, passwordHash);
      const actor = { kind: 'user' as const, id: user.id, displayName: user.displayName };
      const made = await createOrg(deps, tx, { caller: { userId: user.id }, cause: { ...asked.cause, actor } }, { displayName: given.orgDisplayName, slug: given.orgSlug });
      const { cookie } = await beginSession(deps, tx, user, asked);
      return { user, ...made, cookie };
    });
  } catch (error) {
    if (!violates(error, 'user_email_key')) throw error;
    throw new AppError('conflict', 'This address has an account already.', {}, { cause: error });
  }
}

/** Errors: `not_found` once set up, `invalid_credentials`. */
async function requireToken(db: Db, token: string): Promise<void> {
  const [found] = await rows<{ done: boolean; valid: boolean }>(db, `select set_up_at is not null as done,
    exists (select 1 from setup_token where digest = $1 and expires_at > now()) as valid from installation`, digest(token));
  if (found?.done !== false) throw notFound('Setup');
  if (!found.valid) throw new AppError('invalid_credentials', 'The setup token is not valid. Each start of the API prints a new one.');
}

export async function isSetUp(db: Db): Promise<boolean> {
  return (await rows(db, 'select 1 as one from installation where set_up_at is not null')).length > 0;
}

/** A token for the first start, valid for a day beside those of other processes; null once set up. */
export async function issueSetupToken(deps: Pick<IdentityDeps, 'db'>): Promise<string | null> {
  return inTransaction(deps.db, async (tx) => {
    await lockInstallation(tx);
    if (await isSetUp(tx)) return null;
    const token = randomBytes(32).toString('base64url');
    await execute(tx, `insert into setup_token (digest, expires_at) values ($1, now() + interval '${setupTokenHours} hours')`, digest(token));
    return token;
  });
}

export type DemoLogin = { email: string; password: string; orgSlug: string; projectSlug: string };

/**
 * Development: organisation `demo`, project `default` and their owner, once per installation, however many processes ask.
 * The login when it was made by this call, else null: only its hash is kept.
 */
export async function ensureDemo(deps: IdentityDeps, owner: { email: string; password?: string | undefined }): Promise<DemoLogin | null> {
  if (await hasDemo(deps.db.prisma)) return null; // before anything is hashed
  const password = owner.password ?? randomBytes(15).toString('base64url');
  const passwordHash = await deps.engine.hashPassword(password);
  return inTransaction(deps.db, async (tx) => {
    await lockInstallation(tx);
    if (await hasDemo(tx)) return null;
    await execute(tx, 'update installation set demo_at = now(), set_up_at = coalesce(set_up_at, now())');
    await execute(tx, 'delete from setup_token');
    const user = await createOwner(deps, tx, { email: owner.email, displayName: 'Demo owner', password }, passwordHash);
    const { org, project } = await createOrg(deps, tx, { caller: { userId: user.id }, cause: systemCause('ensureDemo') }, { displayName: 'Demo', slug: 'demo' });
    return { email: owner.email, password, orgSlug: org.slug, projectSlug: project.slug };
  });
}

async function hasDemo(db: Db): Promise<boolean> {
  return (await rows(db, 'select 1 as one from installation where demo_at is not null')).length > 0;
}

async function createOwner(deps: IdentityDeps, tx: Tx, owner: FirstOwner, passwordHash: string): Promise<UserRow> {
  const userId = await deps.engine.createUser(tx, { email: owner.email, displayName: owner.displayName, passwordHash, emailVerified: true });
  const user = await getUser(tx, userId);
  if (!user) throw new Error('The user row was not written.');
  return user;
}

/** One process at a time: the row exists since the migration. */
async function lockInstallation(tx: Tx): Promise<void> {
  await rows(tx, 'select 1 as one from installation for update');
}

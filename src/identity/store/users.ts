import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import { sessionsPerUserMax } from '../rules';

export type UserRow = {
  id: Id<'usr'>; email: string; displayName: string; emailVerified: boolean; disabledAt: Date | null; createdAt: Date; updatedAt: Date;
};
export type SessionRow = {
  id: Id<'ses'>; ip: string | null; userAgent: string | null; expiresAt: Date; endsAt: Date; freshUntil: Date | null; createdAt: Date; updatedAt: Date;
};
/** How long sessions live and stay fresh: SESSION_MAX_DAYS, SESSION_FRESH_SECONDS. */
export type SessionTimes = { SESSION_MAX_DAYS: number; SESSION_FRESH_SECONDS: number };

const userColumns = `id, email, name as "displayName", "emailVerified", disabled_at as "disabledAt", "createdAt", "updatedAt"`;

export async function getUser(db: Db, userId: string): Promise<UserRow | null> {
  const [row] = await rows<UserRow>(db, `select ${userColumns} from "user" where id = $1`, userId);
  return row ?? null;
}

export async function findUser(db: Db, email: string): Promise<UserRow | null> {
  const [row] = await rows<UserRow>(db, `select ${userColumns} from "user" where email = $1`, email);
  return row ?? null;
}

/** The user, locked, while the password is still the one that was checked; null when it changed or the account is disabled. */
export async function lockUserWithPassword(tx: Tx, userId: Id<'usr'>, hash: string): Promise<UserRow | null> {
  const [row] = await rows<UserRow>(tx, `select ${userColumns} from "user" u where id = $1 and disabled_at is null
    and exists (select 1 from account where "userId" = u.id and "providerId" = 'credential' and password = $2) for update`, userId, hash);
  return row ?? null;
}

export async function lockUser(tx: Tx, userId: string): Promise<UserRow | null> {
  const [row] = await rows<UserRow>(tx, `select ${userColumns} from "user" where id = $1 and disabled_at is null for update`, userId);
  return row ?? null;
}

export async function renameUser(tx: Tx, userId: string, displayName: string): Promise<void> {
  await execute(tx, `update "user" set name = $2, "updatedAt" = now() where id = $1`, userId, displayName);
}

export async function markEmailVerified(tx: Tx, userId: string): Promise<void> {
  await execute(tx, `update "user" set "emailVerified" = true, "updatedAt" = now() where id = $1 and not "emailVerified"`, userId);
}

/** Sessions, password and memberships go with it. Errors: the last-owner trigger's. */
export async function deleteUser(tx: Tx, userId: string): Promise<void> {
  await execute(tx, 'delete from "user" where id = $1', userId);
}

const sessionColumns = (times: SessionTimes) => `id, "ipAddress" as ip, "userAgent", "expiresAt",
  "createdAt" + interval '${times.SESSION_MAX_DAYS} days' as "endsAt",
  case when fresh_at > now() - interval '${times.SESSION_FRESH_SECONDS} seconds' then fresh_at + interval '${times.SESSION_FRESH_SECONDS} seconds' end as "freshUntil",
  "createdAt", "updatedAt"`;
const isLive = (times: SessionTimes) => `"expiresAt" > now() and "createdAt" > now() - interval '${times.SESSION_MAX_DAYS} days'`;

/** Live sessions, newest first. */
export function listSessions(db: Db, times: SessionTimes, userId: string, page: { after: { createdAt: string; id: string } | null; limit: number }): Promise<SessionRow[]> {
  return rows<SessionRow>(db, `select ${sessionColumns(times)} from session where "userId" = $1 and ${isLive(times)}
    and ($2::timestamptz is null or ("createdAt", id) < ($2::timestamptz, $3)) order by "createdAt" desc, id desc limit $4::int`,
  userId, page.after?.createdAt ?? null, page.after?.id ?? null, page.limit);
}

export async function getSession(db: Db, times: SessionTimes, sessionId: string): Promise<SessionRow | null> {
  const [row] = await rows<SessionRow>(db, `select ${sessionColumns(times)} from session where id = $1`, sessionId);
  return row ?? null;
}

/** Ends the user's oldest sessions beyond twenty. The user's row is locked by the caller. */
export async function endSurplusSessions(tx: Tx, userId: string): Promise<void> {
  await execute(tx, `delete from session where id in (
    select id from session where "userId" = $1 order by "createdAt" desc, id desc offset ${sessionsPerUserMax})`, userId);
}

export function endOtherSessions(tx: Tx, userId: string, keptId: string): Promise<number> {
  return execute(tx, 'delete from session where "userId" = $1 and id <> $2', userId, keptId);
}

/** True when there was one. */
export async function endSession(tx: Tx, userId: string, sessionId: string): Promise<boolean> {
  return await execute(tx, 'delete from session where id = $2 and "userId" = $1', userId, sessionId) === 1;
}

/** Whose session a token was; null when there was none. */
export async function endSessionByToken(tx: Tx, token: string): Promise<{ id: Id<'ses'>; userId: Id<'usr'>; displayName: string } | null> {
  const [row] = await rows<{ id: Id<'ses'>; userId: Id<'usr'>; displayName: string }>(tx, `
    with ended as (delete from session where token = $1 returning id, "userId")
    select ended.id, ended."userId", u.name as "displayName" from ended join "user" u on u.id = ended."userId"`, token);
  return row ?? null;
}

/** From now on the session is fresh again. False when it has ended meanwhile. */
export async function freshenSession(tx: Tx, sessionId: string): Promise<boolean> {
  return await execute(tx, 'update session set fresh_at = now() where id = $1', sessionId) === 1;
}

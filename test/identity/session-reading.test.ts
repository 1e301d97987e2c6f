import { randomBytes } from 'node:crypto';
import { AppError } from '../../src/core/errors';
import { newId } from '../../src/core/ids';
import { sessionCookieName, sessionCookieValue } from '../../src/identity/cookie';
import { createEngine, readSession } from '../../src/identity/service';
import { withDatabase } from '../support/database';
import { testConfig } from '../support/postgres-api';
import { rounds } from '../support/rounds';

const held = withDatabase();
const states = rounds(400, 1_000);

/** Of the cookie, of the session's times and of the account; the engine knows neither `disabled_at` nor the absolute end. */
const pick = <T>(values: readonly T[]) => values[randomBytes(1).readUInt8() % values.length];
const intervals = ['-1 second', '2 seconds', '1 minute', '6 days', '7 days', '-40 days'];

async function makeState(pool: typeof held.database.pool, secret: string) {
  const [userId, token] = [newId('usr'), randomBytes(24).toString('base64url')];
  const [expires, disabled, old, present] = [pick(intervals), pick([false, false, true]), pick([false, false, true]), pick([true, true, true, false])];
  await pool.query('insert into "user" (id, name, email, disabled_at) values ($1, $2, $3, $4)', [userId, 'X', `${userId}@x.test`, disabled ? new Date() : null]);
  if (present) {
    await pool.query(`insert into session (id, "userId", token, "expiresAt", "createdAt", "updatedAt") values ($1, $2, $3, now() + $4::interval, now() - $5::interval, now())`,
      [newId('ses'), userId, token, expires, old ? '31 days' : '1 day']);
  }
  const value = sessionCookieValue(token, secret);
  const spoiled = pick([value, value, value, value.replace('.', '%2E'), value.slice(0, -3), `${value}A`, token, `${value.slice(0, 5)}x${value.slice(6)}`, sessionCookieValue(token, 'another secret'), '', '%', `"${value}"`]) ?? '';
  return { userId, value: spoiled, disabled, old, cookie: `a=b; ${sessionCookieName}=${spoiled}; c=d` };
}

test(`whatever the state of a session, our reading and the engine's agree, but for what only we know (disabled, 30 days)`, async () => {
  const config = testConfig(held.url);
  const { database: db } = held;
  const engine = createEngine(db, config);
  const verdicts = { alive: 0, dead: 0 };
  for (let i = 0; i < states; i++) {
    const state = await makeState(db.pool, config.AUTH_SECRET);
    const ours = await readSession({ db, engine, config }, state.cookie).then(({ caller }) => caller.userId, (error: unknown) => {
      expect(error).toBeInstanceOf(AppError);
      return null;
    });
    const theirs = await engine.getSession(state.value);
    expect({ state, user: ours }).toEqual({ state, user: state.disabled || state.old ? null : theirs?.userId ?? null });
    verdicts[ours ? 'alive' : 'dead'] += 1;
  }
  expect(Math.min(verdicts.alive, verdicts.dead)).toBeGreaterThan(states / 20);
}, rounds(60_000, 300_000));

test('an ended session, a removed membership and a lower role are so on the very next reading, in races too', async () => {
  const config = testConfig(held.url);
  const { database: db } = held;
  const deps = { db, config, engine: createEngine(db, config) };
  const orgId = newId('org');
  const slug = `org-${randomBytes(4).toString('hex')}`;
  await db.pool.query('insert into organization (id, name, slug) values ($1, $2, $3)', [orgId, 'X', slug]);
  for (let i = 0; i < rounds(100, 2_000); i++) {
    const [userId, token] = [newId('usr'), randomBytes(24).toString('base64url')];
    await db.pool.query('insert into "user" (id, name, email) values ($1, $2, $3)', [userId, 'X', `${userId}@x.test`]);
    await db.pool.query(`insert into session (id, "userId", token, "expiresAt") values ($1, $2, $3, now() + interval '1 day')`, [newId('ses'), userId, token]);
    await db.pool.query(`insert into member (id, "organizationId", "userId", role) values ($1, $2, $3, 'admin')`, [newId('usr'), orgId, userId]);
    const read = () => readSession(deps, `${sessionCookieName}=${sessionCookieValue(token, config.AUTH_SECRET)}`, { orgSlug: slug }).then(({ caller }) => ('role' in caller ? caller.role : 'none'), (error: unknown) => (error instanceof AppError ? error.code : 'broken'));
    const [change, verdict] = [
      [`update member set role = 'viewer' where "userId" = $1`, 'viewer'], ['delete from member where "userId" = $1', 'not_found'], ['delete from session where "userId" = $1', 'unauthenticated'],
      ['update "user" set disabled_at = now() where id = $1', 'unauthenticated'],
    ][i % 4] ?? [];
    const during = [read(), db.pool.query(change ?? '', [userId]), read()] as const;
    await during[1];
    expect(await read()).toBe(verdict);
    expect(['admin', verdict]).toContain(await during[0]);
    expect(['admin', verdict]).toContain(await during[2]);
  }
}, rounds(60_000, 600_000));

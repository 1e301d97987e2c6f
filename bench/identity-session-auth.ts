/**
 * Who calls: cookie, session, user, organisation, membership and project in one statement. The peer is the engine's own
 * getSession on Prisma with a membership query, in the same run, in alternation. Then API keys beside the same look-up on Prisma.
 */
import { randomBytes } from 'node:crypto';
import { newId } from '../src/core/ids';
import { digest } from '../src/core/secrets';
import type { Database } from '../src/db/client';
import { sessionCookieName, sessionCookieValue } from '../src/identity/cookie';
import { checkApiKey, createEngine, newApiKey, readSession } from '../src/identity/service';
import { median, print, quantile, withBenchDatabase } from './support/database';

const count = Number(process.env['COUNT'] ?? 2_000);
const config = { AUTH_SECRET: 'bench-secret-bench-secret-bench-secret', PUBLIC_URL: 'http://127.0.0.1', SESSION_IDLE_DAYS: 7, SESSION_MAX_DAYS: 30, SESSION_FRESH_SECONDS: 600 };

async function main(db: Database): Promise<void> {
  const engine = createEngine(db, config);
  const { orgId, projectId, cookies, userIds } = await populate(db, 1_000);
  const times: Record<'ours' | 'engine', number[]> = { ours: [], engine: [] };
  for (let i = 0; i < count + 200; i++) {
    const at = i % cookies.length;
    const value = cookies[at] ?? '';
    const ours = await timed(() => readSession({ db, engine, config }, `${sessionCookieName}=${value}`, { orgSlug: 'bench', projectSlug: 'default' }));
    const theirs = await timed(async () => {
      await engine.getSession(value);
      await db.prisma.member.findFirst({ where: { organizationId: orgId, userId: userIds[at] ?? '' } });
    });
    if (i < 200) continue;
    times.ours.push(ours);
    times.engine.push(theirs);
  }
  report('session-auth', times.ours, times.engine, 'the engine with a membership query');
  await keyAuth(db, orgId, projectId);
}

async function keyAuth(db: Database, orgId: string, projectId: string): Promise<void> {
  const keys = Array.from({ length: 1_000 }, () => newApiKey('live'));
  await db.pool.query(`insert into mail_service (id, org_id, project_id, display_name, plan, sends_per_second) values ('mls_bench', $1, $2, 'Bench', 'launch', 10)`, [orgId, projectId]);
  for (const { digest: hash, prefix, last4 } of keys) {
    await db.pool.query(`insert into api_key (id, service_id, org_id, project_id, name, mode, prefix, last4, digest, scopes, created_by, last_used_at)
      values ($1, 'mls_bench', $2, $3, 'bench', 'live', $4, $5, $6, '{mail:send}', 'usr_bench', now())`, [newId('key'), orgId, projectId, prefix, last4, hash]);
  }
  const times: Record<'ours' | 'prisma', number[]> = { ours: [], prisma: [] };
  for (let i = 0; i < count + 200; i++) {
    const key = keys[i % keys.length]?.key ?? '';
    const ours = await timed(() => checkApiKey({ db }, `Bearer ${key}`));
    const theirs = await timed(async () => {
      const found = await db.prisma.apiKey.findUnique({ where: { digest: digest(key) } });
      await db.prisma.project.findFirst({ where: { id: found?.projectId ?? '', status: 'active' } });
      await db.prisma.organization.findFirst({ where: { id: found?.orgId ?? '', status: 'active' } });
    });
    if (i < 200) continue;
    times.ours.push(ours);
    times.prisma.push(theirs);
  }
  report('key-auth', times.ours, times.prisma, 'the same look-ups on Prisma');
}

function report(name: string, ours: number[], peer: number[], what: string): void {
  print(`${name}: p50 ${median(ours).toFixed(3)} ms, p99 ${quantile(ours, 0.99).toFixed(3)} ms (target p50 0.2); ${what} p50 ${median(peer).toFixed(3)} ms: ${(median(peer) / median(ours)).toFixed(1)} times faster (target 10)`);
}

/** One organisation with a project and so many members, each with a session. */
async function populate(db: Database, members: number) {
  const [orgId, projectId] = [newId('org'), newId('prj')];
  await db.pool.query(`insert into organization (id, name, slug) values ($1, 'Bench', 'bench')`, [orgId]);
  await db.pool.query(`insert into project (id, org_id, slug, display_name) values ($1, $2, 'default', 'Default')`, [projectId, orgId]);
  const cookies: string[] = [];
  const userIds: string[] = [];
  for (let i = 0; i < members; i++) {
    const [userId, token] = [newId('usr'), randomBytes(24).toString('base64url')];
    await db.pool.query('insert into "user" (id, name, email) values ($1, $2, $3)', [userId, 'Bench', `${userId}@bench.test`]);
    await db.pool.query(`insert into member (id, "organizationId", "userId", role) values ($1, $2, $3, 'member')`, [newId('usr'), orgId, userId]);
    await db.pool.query(`insert into session (id, "userId", token, "expiresAt") values ($1, $2, $3, now() + interval '7 days')`, [newId('ses'), userId, token]);
    cookies.push(sessionCookieValue(token, config.AUTH_SECRET));
    userIds.push(userId);
  }
  await db.pool.query('analyze');
  return { orgId, projectId, cookies, userIds };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - begun) / 1e6;
}

void withBenchDatabase(main);

import { join } from 'node:path';
import { z } from 'zod';
import { readFileIfAny, replaceFile } from '../core/files';
import { newId, type Id } from '../core/ids';
import { digest } from '../core/secrets';
import { execute, rows, type Database } from '../db/client';
import { inTransaction, type Tx } from '../db/transaction';
import { createApiKey } from '../identity/service';
import { changeDelegations, readDelegations, registryFile } from './registry/delegations';

/** The zone that the demo project begins with. */
const demoDomain = 'demo.test';
const keysShape = z.object({ dnsApiKey: z.string() });

export type DemoProject = { orgSlug: string; projectSlug: string };

/**
 * A key of the demo project that reads DNS (`dns:read`), the same at every start for as long as it is valid; null when the
 * project is gone. Its value stands in the data folder (0600) alone.
 */
export async function ensureDemoKey(database: Database, dir: string, demo: DemoProject): Promise<string | null> {
  const file = join(dir, 'demo-keys.json');
  const kept = await readFileIfAny(file);
  const known = kept === null ? null : keysShape.parse(JSON.parse(kept)).dnsApiKey;
  if (known !== null && await isValid(database, known)) return known;
  const [project] = await rows<Project>(database.prisma, `
    select o.id as "orgId", p.id as "projectId", m."userId" from organization o join project p on p.org_id = o.id join member m on m."organizationId" = o.id
    where o.slug = $1 and p.slug = $2 and m.role = 'owner' order by m."createdAt" limit 1`, demo.orgSlug, demo.projectSlug);
  if (!project) return null;
  const { orgId, projectId, userId } = project;
  const { key } = await inTransaction(database, async (tx) => createApiKey(tx, {
    serviceId: await ensureOwner(tx, project), orgId, projectId, name: 'Demo: reads DNS', mode: 'live', scopes: ['dns:read'], createdBy: userId,
  }));
  await replaceFile(file, `${JSON.stringify({ dnsApiKey: key })}\n`);
  return key;
}

type Project = { orgId: Id<'org'>; projectId: Id<'prj'>; userId: string };

/** Keys belong to a mail service: the project's oldest, or one made for it. */
async function ensureOwner(tx: Tx, { orgId, projectId }: Project): Promise<string> {
  const [oldest] = await rows<{ id: string }>(tx, `select id from mail_service where project_id = $1 and status = 'active' order by created_at limit 1`, projectId);
  if (oldest) return oldest.id;
  const id = newId('mls');
  await execute(tx, `insert into mail_service (id, org_id, project_id, display_name, plan, sends_per_second) values ($1, $2, $3, 'Demo', 'launch', 10)`, id, orgId, projectId);
  return id;
}

async function isValid(database: Database, key: string): Promise<boolean> {
  return (await rows(database.prisma, 'select 1 as one from api_key where digest = $1 and revoked_at is null', digest(key))).length > 0;
}

/**
 * At the first start with a registry the demo project hosts `demo.test`, the registry delegates it, and a check finds it active.
 * Later starts leave both as they are. Errors: the API refuses; the next start tries again.
 */
export async function hostDemoZone(apiUrl: string, dir: string, { email, password, orgSlug, projectSlug }: DemoProject & { email: string; password: string }): Promise<void> {
  const file = join(dir, registryFile);
  if (await readDelegations(file)) return;
  const api = await signIn(apiUrl, { email, password });
  const zones = `/v1/api/orgs/${orgSlug}/projects/${projectSlug}/dns/zones`;
  const found = z.object({ zones: z.array(zoneShape) }).parse(await api('GET', `${zones}?search=${demoDomain}`)).zones.find(({ domain }) => domain === demoDomain);
  const zone = found ?? z.object({ zone: zoneShape }).parse(await api('POST', zones, { domain: demoDomain, mode: 'full_hosting' })).zone;
  await changeDelegations(file, (present) => [...present.filter(({ domain }) => domain !== demoDomain), { domain: demoDomain, names: zone.nameservers, glue: {}, ds: [] }]);
  await api('POST', `${zones}/${zone.id}/verify`);
}

const zoneShape = z.object({ id: z.string(), domain: z.string(), nameservers: z.array(z.string()) });

type Ask = (method: string, path: string, json?: unknown) => Promise<unknown>;

/** Asks in the name of whoever signed in. Errors: any answer but 2xx, with its message. */
async function signIn(apiUrl: string, login: { email: string; password: string }): Promise<Ask> {
  const ask = async (method: string, path: string, json: unknown, cookie: string): Promise<Response> => {
    const response = await fetch(`${apiUrl}${path}`, {
      method, signal: AbortSignal.timeout(20_000), headers: { ...(cookie ? { cookie } : {}), ...(json === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    if (response.ok) return response;
    throw new Error(`${method} ${path} was answered ${response.status}: ${z.object({ message: z.string() }).catch({ message: '' }).parse(await response.json()).message}`);
  };
  const signedIn = await ask('POST', '/v1/api/auth/sign-in', login, '');
  const cookie = signedIn.headers.getSetCookie().map((text) => text.split(';', 1)[0] ?? '').join('; ');
  return async (method, path, json) => (await ask(method, path, json, cookie)).json();
}

import { release, reserve } from '../billing/service';
import type { Cause, ProjectCaller, Scope } from '../core/caller';
import { invalid } from '../core/errors';
import { readPage, unpagedMax, type Page, type PageRequest } from '../core/page';
import type { Tx } from '../db/transaction';
import { appendAudit, createApiKey, listApiKeys, lockApiKey, requireExpiry, requireScopes, revokeApiKey, rotateApiKey, type ApiKeyRow } from '../identity/service';
import type { MailDeps } from './deps';
import { noKey, requireService } from './faults';
import { canonicalSenderDomain } from './rules/sender-domains';
import { findService, lockService } from './store/services';

export type KeyRequest = {
  name: string; scopes?: readonly Scope[] | undefined; mode?: 'live' | 'test' | undefined; expiresAt?: string | null | undefined; allowedDomains?: readonly string[] | undefined;
};
const scopesDefault = ['mail:send', 'mail:read'] as const satisfies readonly Scope[];
const counted = { product: 'mail', resource: 'mail.api_keys', n: 1 } as const;

/**
 * A key works from the commit on. Errors: `not_found`; `forbidden` for a scope beyond the maker's role; `validation_error`;
 * 402 `plan_limit_reached`.
 */
export async function createKey(
  tx: Tx, deps: Pick<MailDeps, 'clock' | 'dnsPlatform' | 'config'>, request: { caller: ProjectCaller; serviceId: string; body: KeyRequest; cause: Cause },
): Promise<{ row: ApiKeyRow; key: string }> {
  const { caller, body } = request;
  const scopes = body.scopes ?? scopesDefault;
  requireScopes(caller, scopes);
  const expiresAt = body.expiresAt ? new Date(body.expiresAt) : null;
  requireExpiry(expiresAt, deps.clock.now());
  const allowedDomains = canonicalDomains(deps, body.allowedDomains ?? []);
  const service = requireService(await lockService(tx, caller.project.id, request.serviceId));
  await reserve(tx, { orgId: service.orgId, projectId: service.projectId, ...counted, scopeId: service.id });
  const made = await createApiKey(tx, caller, { serviceId: service.id, name: body.name, mode: body.mode ?? 'live', scopes, allowedDomains, expiresAt });
  audit(tx, made.row, request.cause, [{ field: 'name', from: null, to: body.name }, { field: 'scopes', from: null, to: scopes }, { field: 'mode', from: null, to: made.row.mode }]);
  return made;
}

/** Keys of a service, newest first. Errors: `invalid_cursor`. */
export function pageKeys(deps: Pick<MailDeps, 'db' | 'cursors'>, serviceId: string, query: PageRequest & { status?: 'all' | undefined }): Promise<Page<ApiKeyRow>> {
  const filter = { serviceId, revoked: query.status === 'all' };
  return readPage(deps.cursors, { list: 'mail.apiKeys', ...filter }, query, {
    limitDefault: unpagedMax, keyOf: (row) => [row.createdAt.toISOString(), row.id], fetch: (after, limit) => listApiKeys(deps.db.prisma, filter, { after, limit }),
  });
}

/** The first request that begins after the commit is refused. Errors: `not_found`, also for a key that was revoked before. */
export async function revokeKey(tx: Tx, { caller, keyId, cause }: { caller: ProjectCaller; keyId: string; cause: Cause }): Promise<ApiKeyRow> {
  const key = await lockKey(tx, caller, keyId);
  const revoked = await revokeApiKey(tx, key.id);
  if (!revoked) throw noKey();
  if (key.replacedBy === null) await release(tx, { orgId: key.orgId, projectId: key.projectId, ...counted, scopeId: key.serviceId });
  audit(tx, key, cause, [{ field: 'status', from: key.status, to: 'revoked' }]);
  return revoked;
}

/** The pair counts as one key. Errors: `not_found`; `forbidden`; `invalid_state` for a key that is not active or has a successor. */
export async function rotateKey(
  tx: Tx, { caller, keyId, graceHours, cause }: { caller: ProjectCaller; keyId: string; graceHours: number; cause: Cause },
): Promise<{ row: ApiKeyRow; key: string; replaced: ApiKeyRow }> {
  const old = await lockKey(tx, caller, keyId);
  requireScopes(caller, old.scopes);
  const rotated = await rotateApiKey(tx, caller, old, graceHours);
  audit(tx, old, cause, [{ field: 'replacedBy', from: null, to: rotated.row.id }]);
  return rotated;
}

/** Of a living service: the keys of one that goes are gone with it. */
async function lockKey(tx: Tx, { project }: ProjectCaller, keyId: string): Promise<ApiKeyRow> {
  const key = await lockApiKey(tx, project.id, keyId);
  if (!key || !await findService(tx, project.id, key.serviceId)) throw noKey();
  return key;
}

function canonicalDomains({ dnsPlatform, config }: Pick<MailDeps, 'dnsPlatform' | 'config'>, given: readonly string[]): string[] {
  const rules = { allowTestTlds: dnsPlatform.allowTestTlds, platformSuffixes: [dnsPlatform.nameserverSuffix, dnsPlatform.edgeSuffix], bounceDomain: config.MAIL_BOUNCE_DOMAIN };
  const parsed = given.map((text) => canonicalSenderDomain(text, rules));
  const issues = parsed.flatMap((one, i) => ('fault' in one ? [{ path: `allowedDomains.${i}`, message: one.fault }] : []));
  if (issues.length > 0) throw invalid(issues);
  return [...new Set(parsed.flatMap((one) => ('domain' in one ? [one.domain] : [])))];
}

function audit(tx: Tx, { id, orgId, projectId }: ApiKeyRow, cause: Cause, changes: { field: string; from: unknown; to: unknown }[]): void {
  appendAudit(tx, { orgId, projectId, cause, outcome: 'done', target: { type: 'apiKey', id }, changes });
}

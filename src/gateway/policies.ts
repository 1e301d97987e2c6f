import { limits, planAllowing } from '../billing/service';
import type { Cause, ProjectCaller } from '../core/caller';
import { AppError, invalid, notFound } from '../core/errors';
import { readPage, unpagedMax, type Page, type PageRequest } from '../core/page';
import type { Tx } from '../db/transaction';
import { findZone, requireVersion, requireWritable, requireZone, type ZoneRow } from '../dns/service';
import { appendAudit } from '../identity/service';
import type { GatewayDeps } from './deps';
import { loadRuleFacts, type RuleFacts } from './rule-catalogue';
import { canonicalPolicy } from './rules/canonical';
import { policyChanges, type PolicyChange } from './rules/changes';
import { faultyPatterns } from './rules/user-patterns';
import { policyCounts } from './rules/quotas';
import { policyWarnings, type PolicyWarning } from './rules/warnings';
import { policySchema, type Policy, type PolicyBody } from './schemas';
import { findPolicy, findVersion, listVersions, lockPolicy, writePolicy, type PolicyRow, type VersionRow } from './store/policies';

/** `ip` is who writes. */
export type PolicyRequest = { caller: ProjectCaller; zoneId: string; cause: Cause; ifMatch: string | null; dryRun: boolean; ip: string };
export type StoredPolicy = { zone: ZoneRow; row: PolicyRow | null; policy: Policy };
export type WrittenPolicy = StoredPolicy & { changes: PolicyChange[]; warnings: PolicyWarning[] };
type WriteDeps = Pick<GatewayDeps, 'gatewayGeo'> & { ruleFacts: RuleFacts };

/** The policy in force; the default for a zone that was never written. Errors: `not_found`. */
export async function readPolicy(deps: Pick<GatewayDeps, 'db' | 'policyEvaluator'>, projectId: string, zoneId: string): Promise<StoredPolicy> {
  const zone = requireZone(await findZone(deps.db.prisma, projectId, zoneId));
  const [row, ruleFacts] = await Promise.all([findPolicy(deps.db.prisma, zone.id), loadRuleFacts(deps.policyEvaluator)]);
  return { zone, row, policy: policyOf(row, ruleFacts) };
}

/** What a row says, in the present form; the default without a row. */
export function policyOf(row: Pick<PolicyRow, 'document'> | null, ruleFacts: Pick<RuleFacts, 'defaultSet'>): Policy {
  return policySchema.parse(row?.document ?? { mode: 'monitor', managedRules: { ruleSet: ruleFacts.defaultSet } });
}

/** A whole policy as it was given, with what the operator decides where nothing was said. */
export function completePolicy(body: PolicyBody, { defaultSet }: Pick<RuleFacts, 'defaultSet'>): Policy {
  return { ...body, managedRules: { ...body.managedRules, ruleSet: body.managedRules.ruleSet ?? defaultSet } };
}

/**
 * The policy is this one, under a new version unless it was before. Errors, in this order: `not_found`, `service_suspended`,
 * `precondition_failed`, `unsafe_regex` or `rule_set_unavailable`, `quota_exceeded`.
 */
export async function replacePolicy(tx: Tx, deps: WriteDeps, request: PolicyRequest, next: (present: StoredPolicy) => Policy | Promise<Policy>): Promise<WrittenPolicy> {
  const zone = requireWritable(await findZone(tx, request.caller.project.id, request.zoneId));
  const row = await lockPolicy(tx, zone.id);
  const present = { zone, row, policy: policyOf(row, deps.ruleFacts) };
  requireVersion(request.ifMatch, row?.version ?? 0);
  const { policy, masked } = canonicalPolicy(await next(present));
  requireRunnable(policy, deps.ruleFacts);
  await requireQuota(tx, zone.orgId, policy);
  const changes = policyChanges(present.policy, policy);
  const warnings = policyWarnings(policy, { ip: request.ip, ruleIds: deps.ruleFacts.idsOf[policy.managedRules.ruleSet], geo: deps.gatewayGeo, masked, proxiedNames: zone.proxiedCount });
  const written = request.dryRun || (row && changes.length === 0) ? row : await write(tx, { ...present, policy, changes }, request);
  return { zone, row: written, policy, changes, warnings };
}

/** A former version as it was. Errors: `not_found`, also for one that never was or is no longer kept. */
export async function readVersionOf(deps: Pick<GatewayDeps, 'db' | 'policyEvaluator'>, projectId: string, zoneId: string, version: string): Promise<StoredPolicy & { row: PolicyRow }> {
  const zone = requireZone(await findZone(deps.db.prisma, projectId, zoneId));
  const row = /^[1-9]\d{0,8}$/.test(version) ? await findVersion(deps.db.prisma, zone.id, Number(version)) : null;
  if (!row) throw notFound('Version of the policy');
  return { zone, row, policy: policyOf(row, await loadRuleFacts(deps.policyEvaluator)) };
}

/** Versions that are kept, newest first. Errors: `not_found`, `invalid_cursor`. */
export async function pageVersions({ db, cursors }: Pick<GatewayDeps, 'db' | 'cursors'>, projectId: string, zoneId: string, query: PageRequest): Promise<Page<VersionRow>> {
  const zone = requireZone(await findZone(db.prisma, projectId, zoneId));
  return readPage(cursors, { list: 'gateway.versions', zoneId: zone.id }, query, {
    limitDefault: unpagedMax, keyOf: ({ version }) => [version], fetch: (after, limit) => listVersions(db.prisma, zone.id, { after, limit }),
  });
}

async function write(tx: Tx, { zone, row, policy, changes }: StoredPolicy & { changes: PolicyChange[] }, { cause }: PolicyRequest): Promise<PolicyRow> {
  const version = (row?.version ?? 0) + 1;
  const written = await writePolicy(tx, { zoneId: zone.id, version, policy, changes, updatedBy: cause.actor.id });
  if (!written) throw new AppError('precondition_failed', 'The policy was changed meanwhile. Read it again.', { version });
  appendAudit(tx, {
    orgId: zone.orgId, projectId: zone.projectId, cause, outcome: 'done', target: { type: 'gatewayPolicy', id: zone.id },
    changes: [{ field: 'version', from: row?.version ?? 0, to: version }, { field: 'changed', from: null, to: changes.slice(0, 100).map(({ path }) => path) }],
  });
  return written;
}

/** Errors: `unsafe_regex`, `rule_set_unavailable`. */
export function requireRunnable(policy: Policy, { sets }: Pick<RuleFacts, 'sets'>): void {
  const faults = faultyPatterns(policy);
  const [first] = faults;
  if (first) throw new AppError('unsafe_regex', `${first.path}: this pattern cannot be run safely: ${first.message}.`, { issues: faults });
  const { ruleSet } = policy.managedRules;
  if (sets[ruleSet] === null) throw new AppError('rule_set_unavailable', `This installation has not loaded the rule set ${ruleSet}.`, { ruleSet, available: Object.keys(sets).filter((name) => name !== ruleSet) });
}

/** Errors: `quota_exceeded` for what the organisation's plan does not allow. What is stored works on after a change of plan. */
async function requireQuota(tx: Tx, orgId: string, policy: Policy): Promise<void> {
  const allowed = await limits(tx, { orgId }, 'dns');
  for (const { resource, used, of } of policyCounts(policy)) {
    const limit = allowed[resource];
    if (limit === undefined || used <= limit) continue;
    throw new AppError('quota_exceeded', `Your plan allows ${limit} ${of} per zone; this policy has ${used}.`, { resource, limit, used, upgradeTo: await planAllowing(tx, resource, used) });
  }
}

/** Errors: `validation_error` naming the place. */
export function requireExclusionRoom(count: number): void {
  if (count >= 200) throw invalid([{ path: 'managedRules.exclusions', message: 'holds 200 exclusions already' }]);
}

import { release, reserve } from '../billing/service';
import { AppError } from '../core/errors';
import type { Cause, ProjectCaller } from '../core/caller';
import { isId, newId } from '../core/ids';
import { readPage, unpagedMax, type Page, type PageRequest } from '../core/page';
import type { Tx } from '../db/transaction';
import { removeManagedRecords } from '../dns/service';
import { appendAudit, type AuditChange } from '../identity/service';
import { openOperation, openOperationsOf, settleOperation, type OperationRow } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import type { MailDeps } from './deps';
import { noDomain, requireService } from './faults';
import { placeRecords } from './publication';
import { windowMs } from './rules/domain-checks';
import { randomBase32 } from './rules/domain-records';
import { canonicalSenderDomain } from './rules/sender-domains';
import { newSigningKey, sealSigningKey, type NewSigningKey } from './signing-keys';
import { insertKey, readKeys } from './store/domain-records';
import { checkBy, domainExists, findDomain, insertDomain, listDomains, loadDomain, lockDomain, markDomainDeleted, type DomainRow } from './store/domains';
import { lockService } from './store/services';

export type AddDomainDeps = Pick<MailDeps, 'clock' | 'secrets' | 'dnsPlatform' | 'config'>;
const verifyKind = 'mail.verify_domain';

/** Errors: `invalid_domain`. */
export function canonicalName({ dnsPlatform, config }: Pick<MailDeps, 'dnsPlatform' | 'config'>, text: string): string {
  const parsed = canonicalSenderDomain(text, {
    allowTestTlds: dnsPlatform.allowTestTlds, platformSuffixes: [dnsPlatform.nameserverSuffix, dnsPlatform.edgeSuffix], bounceDomain: config.MAIL_BOUNCE_DOMAIN,
  });
  if ('fault' in parsed) throw new AppError('invalid_domain', `The domain ${parsed.fault}.`);
  return parsed.domain;
}

export type Added = { domain: DomainRow; operation: OperationRow | null };

/**
 * A pending domain whose records are in the project's hosted zone as far as nothing of the user stands in the way; the same domain
 * again in this service: the one there is. `key` was made before the transaction. Errors: `not_found`; `domain_exists`; 402 `plan_limit_reached`.
 */
export async function addDomain(
  tx: Tx, deps: AddDomainDeps, request: { caller: ProjectCaller; serviceId: string; name: string; returnPath: string; key: NewSigningKey; cause: Cause },
): Promise<Added> {
  const { caller: { project }, name, cause } = request;
  const service = requireService(await lockService(tx, project.id, request.serviceId));
  const present = await findDomain(tx, project.id, { name });
  if (present?.mailServiceId === service.id) return { domain: present, operation: null };
  if (present) throw domainExists(name);
  const owner = { orgId: service.orgId, projectId: service.projectId };
  await reserve(tx, { ...owner, product: 'mail', resource: 'mail.domains', n: 1, scopeId: service.id });
  const id = newId('dom');
  const now = deps.clock.now();
  await insertDomain(tx, {
    id, mailServiceId: service.id, ...owner, domain: name, token: randomBase32(32), returnPath: request.returnPath, now, verificationDeadline: new Date(now.getTime() + windowMs),
  });
  await insertKey(tx, { domainId: id, selector: request.key.selector, state: 'current', publicKey: request.key.publicKey, sealed: sealSigningKey(deps.secrets, id, request.key) });
  const domain = requireDomain(await loadDomain(tx, id));
  await placeRecords(tx, deps, domain);
  const operation = await openVerification(tx, domain, cause);
  auditDomain(tx, domain, cause, [{ field: 'domain', from: null, to: name }, { field: 'status', from: null, to: 'pending' }]);
  return { domain: requireDomain(await loadDomain(tx, id)), operation };
}

/** The run that checks a pending domain is there and checks now; the operation ends when the domain is verified, failed or deleted. */
export function openVerification(tx: Tx, domain: Pick<DomainRow, 'id' | 'orgId' | 'projectId' | 'domain'>, cause: Cause): Promise<OperationRow> {
  return openOperation(tx, {
    orgId: domain.orgId, projectId: domain.projectId, kind: verifyKind, resourceId: domain.id, summary: `Verify mail domain ${domain.domain}`, requestId: cause.requestId,
    start: { workflow: 'verifyDomain', workflowId: workflowIds.verifyDomain(domain.id), queue: 'mail', payload: { domainId: domain.id }, signal: 'recheck' },
  });
}

/** The open verifications of a domain end with its verdict. */
export async function settleVerifications(tx: Tx, domainId: string, to: 'succeeded' | 'failed' | 'cancelled'): Promise<void> {
  const error = to === 'failed' ? { code: 'verification_failed', message: 'The records were not found in time.' } : undefined;
  for (const { id } of await openOperationsOf(tx, domainId, verifyKind)) await settleOperation(tx, id, to, error);
}

/** By id or by name in any spelling. Errors: `not_found` for what is absent, foreign, deleted or no name at all. */
export async function getDomain(deps: Pick<MailDeps, 'db' | 'dnsPlatform' | 'config'>, projectId: string, ref: string): Promise<DomainRow> {
  return requireDomain(await findDomain(deps.db.prisma, projectId, refOf(deps, ref)));
}

function refOf(deps: Pick<MailDeps, 'dnsPlatform' | 'config'>, ref: string): { id: string } | { name: string } {
  if (isId('dom', ref)) return { id: ref };
  try {
    return { name: canonicalName(deps, ref) };
  } catch (error) {
    if (error instanceof AppError) throw noDomain();
    throw error;
  }
}

/** Domains of a service, newest first. Errors: `invalid_cursor`. */
export function pageDomains(deps: Pick<MailDeps, 'db' | 'cursors'>, serviceId: string, query: PageRequest): Promise<Page<DomainRow>> {
  return readPage(deps.cursors, { list: 'mail.domains', serviceId }, query, {
    limitDefault: unpagedMax, keyOf: (row) => [row.createdAt.toISOString(), row.id], fetch: (after, limit) => listDomains(deps.db.prisma, serviceId, { after, limit }),
  });
}

/** The domain's records stand in the hosted zone again, and a pending domain is checked. Errors: `not_found`; `invalid_state` without a hosted zone. */
export async function publishDomain(tx: Tx, deps: Pick<MailDeps, 'clock' | 'dnsPlatform' | 'config'>, { domainId, cause }: { domainId: string; cause: Cause }): Promise<DomainRow> {
  const domain = requireDomain(await lockDomain(tx, domainId));
  if (!await placeRecords(tx, deps, domain)) throw new AppError('invalid_state', `This project hosts no zone for ${domain.domain}. Set the records where the domain is hosted.`);
  await checkBy(tx, domain.id, deps.clock.now());
  if (domain.status === 'pending') await openVerification(tx, domain, cause);
  auditDomain(tx, domain, cause, [{ field: 'records', from: null, to: 'published' }]);
  return requireDomain(await loadDomain(tx, domain.id));
}

/** A second key waits: it signs once its record is seen. Errors: `not_found`; `invalid_state` while another one waits. */
export async function rotateDkim(
  tx: Tx, deps: AddDomainDeps, { domainId, key, cause }: { domainId: string; key: NewSigningKey; cause: Cause },
): Promise<DomainRow> {
  const domain = requireDomain(await lockDomain(tx, domainId));
  const waiting = (await readKeys(tx, domain.id)).find(({ state }) => state === 'next');
  if (waiting) throw new AppError('invalid_state', `The key ${waiting.selector} waits for its record already.`, { status: domain.status, selector: waiting.selector });
  await insertKey(tx, { domainId: domain.id, selector: key.selector, state: 'next', publicKey: key.publicKey, sealed: sealSigningKey(deps.secrets, domain.id, key) });
  await placeRecords(tx, deps, domain);
  await checkBy(tx, domain.id, deps.clock.now());
  auditDomain(tx, domain, cause, [{ field: 'selector', from: null, to: key.selector }]);
  return requireDomain(await loadDomain(tx, domain.id));
}

/** Nothing is sent from the domain any more, and nothing of it is left in hosted zones; null when it was gone. */
export async function endDomain(tx: Tx, deps: Pick<MailDeps, 'dnsPlatform'>, domainId: string, cause: Cause): Promise<DomainRow | null> {
  const domain = await lockDomain(tx, domainId);
  if (!domain) return null;
  await markDomainDeleted(tx, domain.id);
  await removeManagedRecords(tx, deps, { owner: 'mail', ownerId: domain.id });
  await release(tx, { orgId: domain.orgId, projectId: domain.projectId, product: 'mail', resource: 'mail.domains', n: 1, scopeId: domain.mailServiceId });
  await settleVerifications(tx, domain.id, 'cancelled');
  auditDomain(tx, domain, cause, [{ field: 'status', from: domain.status, to: 'deleted' }]);
  return domain;
}

export function auditDomain(tx: Tx, { id, orgId, projectId }: Pick<DomainRow, 'id' | 'orgId' | 'projectId'>, cause: Cause, changes: AuditChange[]): void {
  appendAudit(tx, { orgId, projectId, cause, outcome: 'done', target: { type: 'mailDomain', id }, changes });
}

/** Errors: `not_found`. */
export function requireDomain(domain: DomainRow | null): DomainRow {
  if (!domain) throw noDomain();
  return domain;
}

export { newSigningKey };

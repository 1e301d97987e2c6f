import { operationsOf, type RateRule } from '../../http/operation';
import { viewOperation } from '../../operations/view';
import type { MailDeps } from '../deps';
import { addDomain, canonicalName, endDomain, getDomain, newSigningKey, pageDomains, publishDomain, requireDomain, rotateDkim } from '../domains';
import { addDomainBody, addedDomainAnswer, deletedDomainAnswer, domainAnswer, emptyBody, listDomainsAnswer, listQuery, verifiedDomainAnswer } from '../schemas';
import { getService } from '../services';
import { followVerification, verifyLive } from '../verify';
import { showDomain, showDomains } from './shown';

const { project } = operationsOf<MailDeps>();
const tag = 'Mail domains';
const returnPathDefault = 'bounce';

const addMailDomain = project('mail:write')({
  id: 'addMailDomain', method: 'post', path: '/mail/services/:mailServiceId/domains', tag,
  summary: 'Add a sender domain',
  description: 'Set the records of the answer in DNS; where this project hosts the zone they are set already. The domain is checked until it is verified, for 72 hours.',
  body: addDomainBody, answer: addedDomainAnswer, errors: ['invalid_domain', 'domain_exists', 'plan_limit_reached'], idempotent: true,
  handle: async ({ deps, caller, params: { mailServiceId }, body, cause, transact }) => {
    const name = canonicalName(deps, body.domain ?? body.name ?? '');
    await getService(deps, caller.project.id, mailServiceId);
    const key = await newSigningKey();
    return transact(async (tx) => {
      const { domain, operation } = await addDomain(tx, deps, { caller, serviceId: mailServiceId, name, returnPath: body.returnPath ?? returnPathDefault, key, cause });
      return { domain: await showDomain(tx, domain), operation: operation && viewOperation(operation) };
    });
  },
});

const listMailDomains = project('mail:read')({
  id: 'listMailDomains', method: 'get', path: '/mail/services/:mailServiceId/domains', tag,
  summary: 'Sender domains of a mail service, newest first',
  query: listQuery, answer: listDomainsAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params, query }) => {
    const { id } = await getService(deps, caller.project.id, params.mailServiceId);
    const { items, ...page } = await pageDomains(deps, id, query);
    return { domains: await showDomains(deps.db.prisma, items), ...page };
  },
});

const getMailDomain = project('mail:read')({
  id: 'getMailDomain', method: 'get', path: '/mail/domains/:domainRef', tag,
  summary: 'A sender domain, by id or by name',
  answer: domainAnswer,
  handle: async ({ deps, caller, params }) => ({ domain: await showDomain(deps.db.prisma, await getDomain(deps, caller.project.id, params.domainRef)) }),
});

const verifyMailDomain = project('mail:write')({
  id: 'verifyMailDomain', method: 'post', path: '/mail/domains/:domainRef/verify', tag,
  summary: 'Check the records of a domain now',
  description: 'Asks DNS itself, for 5 s at most and once in 10 s; else the answer says live: false and shows what was found last. Never takes a verified domain back.',
  body: emptyBody, bodyOptional: true, answer: verifiedDomainAnswer,
  handle: async ({ deps, caller, params, cause, transact }) => {
    const found = await getDomain(deps, caller.project.id, params.domainRef);
    const verification = await verifyLive(deps, found.id);
    return transact(async (tx) => {
      const { domain, operation } = await followVerification(tx, { domainId: found.id, cause });
      return { domain: await showDomain(tx, domain), operation: operation && viewOperation(operation), verification: { ...verification, checkedAt: domain.lastCheckedAt?.toISOString() ?? null } };
    });
  },
});

const publishMailDomain = project('mail:write')({
  id: 'publishMailDomain', method: 'post', path: '/mail/domains/:domainRef/publish', tag,
  summary: "Write the domain's records into the zone this project hosts",
  description: 'Records of your own at the same names stay; the answer says which of ours are published.',
  body: emptyBody, bodyOptional: true, answer: domainAnswer, errors: ['invalid_state'],
  handle: async ({ deps, caller, params, cause, transact }) => {
    const found = await getDomain(deps, caller.project.id, params.domainRef);
    return transact(async (tx) => ({ domain: await showDomain(tx, await publishDomain(tx, deps, { domainId: found.id, cause })) }));
  },
});

const rotateRate: RateRule = { name: 'mail-rotate-dkim', limit: 1, periodSeconds: 3_600 };

const rotateMailDkim = project('mail:write')({
  id: 'rotateMailDkim', method: 'post', path: '/mail/domains/:domainRef/rotate-dkim', tag,
  summary: 'Begin to sign with a new key',
  description: 'The new key signs once its record is seen; the record of the old one should stay for 7 days more. Once an hour.',
  body: emptyBody, bodyOptional: true, answer: domainAnswer, errors: ['invalid_state', 'rate_limited'],
  handle: async ({ deps, caller, params, cause, transact }) => {
    const found = await getDomain(deps, caller.project.id, params.domainRef);
    await deps.limiter.take(rotateRate, found.id);
    const key = await newSigningKey();
    return transact(async (tx) => ({ domain: await showDomain(tx, await rotateDkim(tx, deps, { domainId: found.id, key, cause })) }));
  },
});

const deleteMailDomain = project('mail:delete')({
  id: 'deleteMailDomain', method: 'delete', path: '/mail/domains/:domainRef', tag,
  summary: 'Delete a sender domain',
  description: 'Nothing is sent from it any more; records of ours in hosted zones are removed.',
  answer: deletedDomainAnswer,
  handle: async ({ deps, caller, params, cause, transact }) => {
    const found = await getDomain(deps, caller.project.id, params.domainRef);
    const shown = await showDomain(deps.db.prisma, found);
    return transact(async (tx) => {
      requireDomain(await endDomain(tx, deps, found.id, cause));
      return { deleted: true as const, domainId: found.id, domain: shown };
    });
  },
});

export const domainOperations = [addMailDomain, listMailDomains, getMailDomain, verifyMailDomain, publishMailDomain, rotateMailDkim, deleteMailDomain];

import { operationsOf } from '../../http/operation';
import { viewOperation } from '../../operations/view';
import type { MailDeps } from '../deps';
import { createdServiceAnswer, createServiceBody, deletedServiceAnswer, listQuery, listServicesAnswer, serviceAnswer, updateServiceBody } from '../schemas';
import { deleteService } from '../service-deletion';
import { createService, getService, pageServices, renameService } from '../services';
import { showService, showServices } from './shown';

const { project } = operationsOf<MailDeps>();
const tag = 'Mail services';

const listMailServices = project('mail:read')({
  id: 'listMailServices', method: 'get', path: '/mail/services', tag,
  summary: 'All mail services of the project, newest first',
  query: listQuery, answer: listServicesAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, query }) => {
    const { items, ...page } = await pageServices(deps, caller.project.id, query);
    return { services: await showServices(deps, deps.db.prisma, items), ...page };
  },
});

const createMailService = project('mail:write')({
  id: 'createMailService', method: 'post', path: '/mail/services', tag,
  summary: 'Create a mail service',
  description: 'It can be used at once; add a domain and a key to send.',
  body: createServiceBody, answer: createdServiceAnswer, errors: ['plan_limit_reached', 'payment_required', 'spend_limit_reached'], idempotent: true,
  handle: ({ deps, caller, body, cause, transact }) => transact(async (tx) => {
    const service = await createService(tx, { caller, body, cause });
    return { mailServiceId: service.id, service: await showService(deps, tx, service) };
  }),
});

const getMailService = project('mail:read')({
  id: 'getMailService', method: 'get', path: '/mail/services/:mailServiceId', tag,
  summary: 'A mail service, with its limits and what it has used',
  answer: serviceAnswer,
  handle: async ({ deps, caller, params }) => ({ service: await showService(deps, deps.db.prisma, await getService(deps, caller.project.id, params.mailServiceId)) }),
});

const updateMailService = project('mail:write')({
  id: 'updateMailService', method: 'patch', path: '/mail/services/:mailServiceId', tag,
  summary: 'Rename a mail service',
  description: 'The plan is changed through billing.',
  body: updateServiceBody, answer: serviceAnswer,
  handle: ({ deps, caller, params, body: { displayName }, cause, transact }) => transact(async (tx) =>
    ({ service: await showService(deps, tx, await renameService(tx, { caller, serviceId: params.mailServiceId, displayName, cause })) })),
});

const deleteMailService = project('mail:delete')({
  id: 'deleteMailService', method: 'delete', path: '/mail/services/:mailServiceId', tag,
  summary: 'Delete a mail service',
  description: 'Its keys end at once; what has not been sent is cancelled, and domains, bodies and webhooks are removed.',
  answer: deletedServiceAnswer,
  handle: ({ deps, caller, params: { mailServiceId }, cause, transact }) => transact(async (tx) => {
    const { service, operation } = await deleteService(tx, { caller, serviceId: mailServiceId, cause });
    return { deleted: true as const, mailServiceId, service: await showService(deps, tx, service), operation: viewOperation(operation) };
  }),
});

export const serviceOperations = [listMailServices, createMailService, getMailService, updateMailService, deleteMailService];

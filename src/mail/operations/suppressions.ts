import { operationsOf } from '../../http/operation';
import type { MailDeps } from '../deps';
import { deletedSuppressionAnswer, listSuppressionsAnswer, listSuppressionsQuery, suppressBody, suppressionAnswer } from '../schemas';
import { getService } from '../services';
import { pageSuppressions, suppress, unsuppress } from '../suppressions';
import { viewSuppression } from '../view';

const { project, scoped } = operationsOf<MailDeps>();
const tag = 'Mail suppressions';
const shown = { tag, description: 'An address that is suppressed gets no mail of this service.' };

const listMailSuppressions = project('mail:read')({
  ...shown, id: 'listMailSuppressions', method: 'get', path: '/mail/services/:mailServiceId/suppressions',
  summary: 'Suppressed addresses of a mail service, newest first',
  query: listSuppressionsQuery, answer: listSuppressionsAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params, query }) => {
    const { id } = await getService(deps, caller.project.id, params.mailServiceId);
    const { items, ...page } = await pageSuppressions(deps, id, query);
    return { suppressions: items.map(viewSuppression), ...page };
  },
});

const createMailSuppression = project('mail:write')({
  ...shown, id: 'createMailSuppression', method: 'post', path: '/mail/services/:mailServiceId/suppressions',
  summary: 'Suppress an address',
  body: suppressBody, answer: suppressionAnswer, idempotent: true,
  handle: async ({ deps, caller, params, body, cause, transact }) => {
    const service = await getService(deps, caller.project.id, params.mailServiceId);
    return transact(async (tx) => ({ suppression: viewSuppression(await suppress(tx, service, { body, cause })) }));
  },
});

const deleteMailSuppression = project('mail:write')({
  ...shown, id: 'deleteMailSuppression', method: 'delete', path: '/mail/suppressions/:suppressionId',
  summary: 'Send to an address again',
  answer: deletedSuppressionAnswer,
  handle: ({ caller, params: { suppressionId }, cause, transact }) => transact(async (tx) =>
    ({ deleted: true as const, suppressionId, suppression: viewSuppression(await unsuppress(tx, { projectId: caller.project.id }, { suppressionId, cause })) })),
});

const listMailSuppressionsByKey = scoped('mail:suppressions')({
  ...shown, id: 'listMailSuppressionsByKey', method: 'get', path: '/api/mail/suppressions',
  summary: "Suppressed addresses of the key's service, newest first",
  query: listSuppressionsQuery, answer: listSuppressionsAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, query }) => {
    const { items, ...page } = await pageSuppressions(deps, caller.serviceId, query);
    return { suppressions: items.map(viewSuppression), ...page };
  },
});

const createMailSuppressionByKey = scoped('mail:suppressions')({
  ...shown, id: 'createMailSuppressionByKey', method: 'post', path: '/api/mail/suppressions',
  summary: "Suppress an address for the key's service",
  body: suppressBody, answer: suppressionAnswer, idempotent: true,
  handle: ({ caller: { serviceId: id, orgId, projectId }, body, cause, transact }) => transact(async (tx) =>
    ({ suppression: viewSuppression(await suppress(tx, { id, orgId, projectId }, { body, cause })) })),
});

const deleteMailSuppressionByKey = scoped('mail:suppressions')({
  ...shown, id: 'deleteMailSuppressionByKey', method: 'delete', path: '/api/mail/suppressions/:suppressionId',
  summary: "Send to an address of the key's service again",
  answer: deletedSuppressionAnswer,
  handle: ({ caller: { serviceId }, params: { suppressionId }, cause, transact }) => transact(async (tx) =>
    ({ deleted: true as const, suppressionId, suppression: viewSuppression(await unsuppress(tx, { serviceId }, { suppressionId, cause })) })),
});

export const suppressionOperations = [
  listMailSuppressions, createMailSuppression, deleteMailSuppression, listMailSuppressionsByKey, createMailSuppressionByKey, deleteMailSuppressionByKey,
];

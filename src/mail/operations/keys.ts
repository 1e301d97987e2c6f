import { operationsOf } from '../../http/operation';
import type { MailDeps } from '../deps';
import { createKey, pageKeys, revokeKey, rotateKey } from '../keys';
import { createdKeyAnswer, createKeyBody, listKeysAnswer, listKeysQuery, revokedKeyAnswer, rotatedKeyAnswer, rotateKeyBody } from '../schemas';
import { getService } from '../services';
import { viewKey } from '../view';

const { project } = operationsOf<MailDeps>();
const tag = 'Mail API keys';
const graceHoursDefault = 24;

const createMailApiKey = project('mail:keys')({
  id: 'createMailApiKey', method: 'post', path: '/mail/services/:mailServiceId/api-keys', tag,
  summary: 'Create an API key',
  description: 'The value is answered this once.',
  body: createKeyBody, answer: createdKeyAnswer, errors: ['plan_limit_reached'], idempotent: true, secrets: ['key'], noStore: true,
  handle: ({ deps, caller, params, body, cause, transact }) => transact(async (tx) => {
    const { row, key } = await createKey(tx, deps, { caller, serviceId: params.mailServiceId, body, cause });
    return { apiKey: viewKey(row), key };
  }),
});

const listMailApiKeys = project('mail:read')({
  id: 'listMailApiKeys', method: 'get', path: '/mail/services/:mailServiceId/api-keys', tag,
  summary: 'API keys of a mail service, newest first',
  description: 'Revoked keys are listed only with status=all.',
  query: listKeysQuery, answer: listKeysAnswer, errors: ['invalid_cursor'], noStore: true,
  handle: async ({ deps, caller, params, query }) => {
    const { id } = await getService(deps, caller.project.id, params.mailServiceId);
    const { items, ...page } = await pageKeys(deps, id, query);
    return { apiKeys: items.map(viewKey), ...page };
  },
});

const revokeMailApiKey = project('mail:keys')({
  id: 'revokeMailApiKey', method: 'delete', path: '/mail/api-keys/:apiKeyId', tag,
  summary: 'Revoke an API key',
  description: 'The first request that begins after the answer is refused.',
  answer: revokedKeyAnswer, noStore: true,
  handle: ({ caller, params: { apiKeyId }, cause, transact }) => transact(async (tx) =>
    ({ deleted: true as const, apiKeyId, apiKey: viewKey(await revokeKey(tx, { caller, keyId: apiKeyId, cause })) })),
});

const rotateMailApiKey = project('mail:keys')({
  id: 'rotateMailApiKey', method: 'post', path: '/mail/api-keys/:apiKeyId/rotate', tag,
  summary: 'Replace an API key by a new one with the same rights',
  description: 'The old one goes on working for graceHours, 24 unless given.',
  body: rotateKeyBody, bodyOptional: true, answer: rotatedKeyAnswer, errors: ['invalid_state'], idempotent: true, secrets: ['key'], noStore: true,
  handle: ({ caller, params, body, cause, transact }) => transact(async (tx) => {
    const { row, key, replaced } = await rotateKey(tx, { caller, keyId: params.apiKeyId, graceHours: body.graceHours ?? graceHoursDefault, cause });
    return { apiKey: viewKey(row), key, replaced: viewKey(replaced) };
  }),
});

export const keyOperations = [createMailApiKey, listMailApiKeys, revokeMailApiKey, rotateMailApiKey];

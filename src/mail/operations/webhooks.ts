import { operationsOf } from '../../http/operation';
import type { MailDeps } from '../deps';
import {
  createWebhookBody, deletedWebhookAnswer, deliveryAnswer, listDeliveriesAnswer, listDeliveriesQuery, listWebhooksAnswer, listWebhooksQuery, updateWebhookBody, webhookAnswer,
  webhookSecretAnswer, type DeliveryView, type WebhookView,
} from '../schemas/webhooks';
import { getService } from '../services';
import type { DeliveryRow } from '../store/webhook-deliveries';
import type { WebhookRow } from '../store/webhooks';
import { createWebhook, getWebhook, pageDeliveries, pageWebhooks, removeWebhook, replay, rotateWebhookSecret, testWebhook, updateWebhook } from '../webhooks/endpoints';

const { project } = operationsOf<MailDeps>();
const tag = 'Mail webhooks';
const description = 'Standard Webhooks: signed, at least once, in any order; `webhook-id` is the same for every attempt.';
const shown = { tag, description };

const listMailWebhooks = project('mail:read')({
  ...shown, id: 'listMailWebhooks', method: 'get', path: '/mail/services/:mailServiceId/webhooks',
  summary: 'Webhooks of a mail service, newest first',
  query: listWebhooksQuery, answer: listWebhooksAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params, query }) => {
    const { id } = await getService(deps, caller.project.id, params.mailServiceId);
    const { items, ...page } = await pageWebhooks(deps, id, query);
    return { webhooks: items.map(viewWebhook), ...page };
  },
});

const createMailWebhook = project('mail:keys')({
  ...shown, id: 'createMailWebhook', method: 'post', path: '/mail/services/:mailServiceId/webhooks',
  summary: 'Have a URL told of events',
  body: createWebhookBody, answer: webhookSecretAnswer, errors: ['plan_limit_reached'], idempotent: true, secrets: ['secret'], noStore: true,
  handle: ({ deps, caller, params, body, cause, transact }) => transact(async (tx) => {
    const { webhook, secret } = await createWebhook(tx, deps, { projectId: caller.project.id, serviceId: params.mailServiceId, wish: body, cause });
    return { webhook: viewWebhook(webhook), secret };
  }),
});

const getMailWebhook = project('mail:read')({
  ...shown, id: 'getMailWebhook', method: 'get', path: '/mail/webhooks/:webhookId',
  summary: 'A webhook',
  answer: webhookAnswer,
  handle: async ({ deps, caller, params }) => ({ webhook: viewWebhook(await getWebhook(deps, caller.project.id, params.webhookId)) }),
});

const updateMailWebhook = project('mail:write')({
  ...shown, id: 'updateMailWebhook', method: 'patch', path: '/mail/webhooks/:webhookId',
  summary: 'Change a webhook, or switch it on or off',
  body: updateWebhookBody, answer: webhookAnswer,
  handle: ({ deps, caller, params: { webhookId }, body, cause, transact }) => transact(async (tx) =>
    ({ webhook: viewWebhook(await updateWebhook(tx, deps, { projectId: caller.project.id, webhookId, change: body, cause })) })),
});

const deleteMailWebhook = project('mail:write')({
  ...shown, id: 'deleteMailWebhook', method: 'delete', path: '/mail/webhooks/:webhookId',
  summary: 'Delete a webhook and its deliveries',
  answer: deletedWebhookAnswer,
  handle: ({ caller, params: { webhookId }, cause, transact }) => transact(async (tx) =>
    ({ deleted: true as const, webhookId, webhook: viewWebhook(await removeWebhook(tx, { projectId: caller.project.id, webhookId, cause })) })),
});

const rotateMailWebhookSecret = project('mail:keys')({
  ...shown, id: 'rotateMailWebhookSecret', method: 'post', path: '/mail/webhooks/:webhookId/rotate-secret',
  summary: 'Replace the secret; both sign for 24 hours',
  answer: webhookSecretAnswer, idempotent: true, secrets: ['secret'], noStore: true,
  handle: ({ deps, caller, params: { webhookId }, cause, transact }) => transact(async (tx) => {
    const { webhook, secret } = await rotateWebhookSecret(tx, deps, { projectId: caller.project.id, webhookId, cause });
    return { webhook: viewWebhook(webhook), secret };
  }),
});

const testMailWebhook = project('mail:write')({
  ...shown, id: 'testMailWebhook', method: 'post', path: '/mail/webhooks/:webhookId/test',
  summary: 'Send a webhook.test',
  answer: deliveryAnswer, errors: ['rate_limited'], idempotent: true,
  limits: ({ params }) => [{ rule: { name: 'mail-webhook-test', limit: 10, periodSeconds: 60 }, key: params.webhookId }],
  handle: ({ caller, params: { webhookId }, cause, transact }) => transact(async (tx) =>
    ({ delivery: viewDelivery(await testWebhook(tx, { projectId: caller.project.id, webhookId, cause })) })),
});

const listMailWebhookDeliveries = project('mail:read')({
  ...shown, id: 'listMailWebhookDeliveries', method: 'get', path: '/mail/webhooks/:webhookId/deliveries',
  summary: 'What was sent to a webhook, newest first',
  query: listDeliveriesQuery, answer: listDeliveriesAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params: { webhookId }, query }) => {
    const { items, ...page } = await pageDeliveries(deps, { projectId: caller.project.id, webhookId }, query);
    return { deliveries: items.map(viewDelivery), ...page };
  },
});

const replayMailWebhookDelivery = project('mail:write')({
  ...shown, id: 'replayMailWebhookDelivery', method: 'post', path: '/mail/webhooks/:webhookId/deliveries/:eventId/replay',
  summary: 'Send an event again',
  answer: deliveryAnswer, idempotent: true,
  handle: ({ caller, params: { webhookId, eventId }, transact }) => transact(async (tx) =>
    ({ delivery: viewDelivery(await replay(tx, { projectId: caller.project.id, webhookId, eventId })) })),
});

export const webhookOperations = [
  listMailWebhooks, createMailWebhook, getMailWebhook, updateMailWebhook, deleteMailWebhook, rotateMailWebhookSecret, testMailWebhook, listMailWebhookDeliveries, replayMailWebhookDelivery,
];

function viewWebhook({ orgId: _org, projectId: _project, lastSuccessAt, lastFailureAt, createdAt, updatedAt, ...row }: WebhookRow): WebhookView {
  return { ...row, lastSuccessAt: iso(lastSuccessAt), lastFailureAt: iso(lastFailureAt), createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}

function viewDelivery({ eventId, nextAttemptAt, createdAt, updatedAt, ...row }: DeliveryRow): DeliveryView {
  return { id: eventId, ...row, nextAttemptAt: iso(nextAttemptAt), createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}

function iso(at: Date | null): string | null {
  return at?.toISOString() ?? null;
}

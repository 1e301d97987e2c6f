import { randomBytes } from 'node:crypto';
import { release, reserve } from '../../billing/service';
import type { Cause } from '../../core/caller';
import { invalid } from '../../core/errors';
import { newId, type Id } from '../../core/ids';
import { readPage, unpagedMax, type Page, type PageRequest } from '../../core/page';
import type { Secrets } from '../../core/secrets';
import type { Tx } from '../../db/transaction';
import { appendAudit, type AuditChange } from '../../identity/service';
import type { MailDeps } from '../deps';
import { noDelivery, noWebhook, requireService } from '../faults';
import { webhookUrlFault } from '../rules/webhook-url';
import type { WebhookEventType } from '../schemas/webhooks';
import { lockService } from '../store/services';
import { insertDelivery, listDeliveries, replayDelivery, type DeliveryRow, type DeliveryState } from '../store/webhook-deliveries';
import {
  deleteWebhook, findWebhook, insertTestEvent, insertWebhook, listWebhooks, lockWebhook, replaceSecret, setWebhook, type WebhookRow, type WebhookSettings, type WebhookStatus,
} from '../store/webhooks';
import { webhookBody } from './outbox';

type Wish = { url: string; events: WebhookEventType[]; description?: string | null | undefined };
type Place = { projectId: string; webhookId: string; cause: Cause };
type WriteDeps = Pick<MailDeps, 'config' | 'secrets'>;

/** What seals a webhook's secrets to it. */
export function secretPlace(webhookId: string): string {
  return `mail_webhook:${webhookId}`;
}

/** An active webhook and its secret, which is shown now and never again. Errors: `not_found`; `validation_error`; 402 `plan_limit_reached`. */
export async function createWebhook(tx: Tx, deps: WriteDeps, { projectId, serviceId, wish, cause }: { projectId: string; serviceId: string; wish: Wish; cause: Cause }): Promise<{ webhook: WebhookRow; secret: string }> {
  requireUrl(deps, wish.url);
  const service = requireService(await lockService(tx, projectId, serviceId));
  await reserve(tx, { orgId: service.orgId, projectId: service.projectId, product: 'mail', resource: 'mail.webhooks', n: 1, scopeId: service.id });
  const id = newId('whk');
  const secret = newSecret();
  await insertWebhook(tx, { id, mailServiceId: service.id, url: wish.url, events: wish.events, description: wish.description ?? null, secret: seal(deps.secrets, id, secret) });
  const webhook = requireWebhook(await findWebhook(tx, projectId, id));
  audit(tx, webhook, cause, [{ field: 'url', from: null, to: hostOf(wish.url) }, { field: 'events', from: null, to: wish.events }]);
  return { webhook, secret };
}

/** Errors: `not_found` for what is absent or foreign. */
export async function getWebhook(deps: Pick<MailDeps, 'db'>, projectId: string, webhookId: string): Promise<WebhookRow> {
  return requireWebhook(await findWebhook(deps.db.prisma, projectId, webhookId));
}

/** Webhooks of a service, newest first. Errors: `invalid_cursor`. */
export function pageWebhooks(deps: Pick<MailDeps, 'db' | 'cursors'>, serviceId: string, query: PageRequest): Promise<Page<WebhookRow>> {
  return readPage(deps.cursors, { list: 'mail.webhooks', serviceId }, query, {
    limitDefault: unpagedMax, keyOf: (row) => [row.createdAt.toISOString(), row.id], fetch: (after, limit) => listWebhooks(deps.db.prisma, serviceId, { after, limit }),
  });
}

type Change = { url?: string | undefined; events?: WebhookEventType[] | undefined; description?: string | null | undefined; status?: WebhookStatus | undefined };

/** Errors: `not_found`, `validation_error`. */
export async function updateWebhook(tx: Tx, deps: Pick<MailDeps, 'config'>, { projectId, webhookId, change, cause }: Place & { change: Change }): Promise<WebhookRow> {
  if (change.url !== undefined) requireUrl(deps, change.url);
  const before = requireWebhook(await lockWebhook(tx, projectId, webhookId));
  const { url = before.url, events = before.events, status = before.status } = change;
  const description = change.description === undefined ? before.description : change.description;
  await setWebhook(tx, webhookId, { url, events, status, description });
  const after = requireWebhook(await findWebhook(tx, projectId, webhookId));
  audit(tx, after, cause, changesOf(before, after));
  return after;
}

/** Nothing is sent to it any more. Errors: `not_found`. */
export async function removeWebhook(tx: Tx, { projectId, webhookId, cause }: Place): Promise<WebhookRow> {
  const webhook = requireWebhook(await lockWebhook(tx, projectId, webhookId));
  await deleteWebhook(tx, webhookId);
  await release(tx, { orgId: webhook.orgId, projectId: webhook.projectId, product: 'mail', resource: 'mail.webhooks', n: 1, scopeId: webhook.mailServiceId });
  audit(tx, webhook, cause, [{ field: 'url', from: hostOf(webhook.url), to: null }]);
  return webhook;
}

/** A new secret; the present one signs beside it for a day. Errors: `not_found`. */
export async function rotateWebhookSecret(tx: Tx, deps: Pick<MailDeps, 'secrets'>, { projectId, webhookId, cause }: Place): Promise<{ webhook: WebhookRow; secret: string }> {
  const found = requireWebhook(await lockWebhook(tx, projectId, webhookId));
  const secret = newSecret();
  await replaceSecret(tx, webhookId, seal(deps.secrets, webhookId, secret));
  audit(tx, found, cause, [{ field: 'secret', from: null, to: 'rotated' }]);
  return { webhook: requireWebhook(await findWebhook(tx, projectId, webhookId)), secret };
}

/** A delivery of its own, whatever the webhook wants to hear. Sent while it is active. Errors: `not_found`. */
export async function testWebhook(tx: Tx, { projectId, webhookId }: Place): Promise<DeliveryRow> {
  const { mailServiceId } = requireWebhook(await findWebhook(tx, projectId, webhookId));
  const eventId = newId('evt');
  await insertTestEvent(tx, eventId, mailServiceId);
  const body = webhookBody({ eventId, type: 'webhook.test', mailServiceId, occurredAt: new Date() });
  return requireDelivery(await insertDelivery(tx, webhookId, { eventId, type: 'webhook.test', mailServiceId, messageId: null, body }));
}

/** Deliveries of a webhook, newest first. Errors: `not_found`, `invalid_cursor`. */
export async function pageDeliveries(deps: Pick<MailDeps, 'db' | 'cursors'>, { projectId, webhookId }: Omit<Place, 'cause'>, query: PageRequest & { state?: DeliveryState | undefined }): Promise<Page<DeliveryRow>> {
  await getWebhook(deps, projectId, webhookId);
  const filter = { webhookId, state: query.state ?? null };
  return readPage(deps.cursors, { list: 'mail.webhook_deliveries', ...filter }, query, {
    limitDefault: 25, keyOf: (row) => [row.createdAt.toISOString(), row.eventId], fetch: (after, limit) => listDeliveries(deps.db.prisma, filter, { after, limit }),
  });
}

/** The same event goes out again, at once and with a new ladder. Errors: `not_found`. */
export async function replay(tx: Tx, { projectId, webhookId, eventId }: Omit<Place, 'cause'> & { eventId: string }): Promise<DeliveryRow> {
  requireWebhook(await findWebhook(tx, projectId, webhookId));
  return requireDelivery(await replayDelivery(tx, webhookId, eventId));
}

function requireUrl({ config }: Pick<MailDeps, 'config'>, url: string): void {
  const fault = webhookUrlFault(url, { allowPrivate: config.MAIL_WEBHOOK_ALLOW_PRIVATE });
  if (fault) throw invalid([{ path: 'url', message: fault }]);
}

function requireWebhook(webhook: WebhookRow | null): WebhookRow {
  if (!webhook) throw noWebhook();
  return webhook;
}

function requireDelivery(delivery: DeliveryRow | null): DeliveryRow {
  if (!delivery) throw noDelivery();
  return delivery;
}

function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

function seal(secrets: Secrets, webhookId: string, secret: string): string {
  return secrets.seal(secret, secretPlace(webhookId));
}

/** The audit keeps no path: customers put tokens in it. */
function hostOf(url: string): string {
  return new URL(url).host;
}

function changesOf(before: WebhookSettings, after: WebhookSettings): AuditChange[] {
  const shown = ({ url, events, description, status }: WebhookSettings) => ({ url: hostOf(url), events: events.join(), description, status });
  const [from, to] = [shown(before), shown(after)];
  const fields = ['url', 'events', 'description', 'status'] as const;
  return fields.filter((field) => from[field] !== to[field] || (field === 'url' && before.url !== after.url)).map((field) => ({ field, from: from[field], to: to[field] }));
}

function audit(tx: Tx, webhook: { id: Id<'whk'>; orgId: Id<'org'>; projectId: Id<'prj'> }, cause: Cause, changes: AuditChange[]): void {
  appendAudit(tx, { orgId: webhook.orgId, projectId: webhook.projectId, cause, outcome: 'done', target: { type: 'mailWebhook', id: webhook.id }, changes });
}

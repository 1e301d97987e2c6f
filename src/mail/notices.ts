import { newId, type Id } from '../core/ids';
import type { Tx } from '../db/transaction';
import type { otherEventTypes } from './state';
import { insertNotice } from './store/notices';
import { tellWebhooks } from './webhooks/outbox';

export type Notice = { mailServiceId: string; type: Exclude<(typeof otherEventTypes)[number], 'webhook.test'>; facts: Readonly<Record<string, unknown>> };

/** What happened to a domain, a service or its suppressions is on record, and goes to the webhooks that asked for its type. */
export async function recordNotice(tx: Tx, { mailServiceId, type, facts }: Notice): Promise<Id<'evt'>> {
  const id = newId('evt');
  await insertNotice(tx, { id, mailServiceId, type, facts });
  const { recipient, ...more } = facts;
  await tellWebhooks(tx, [{
    eventId: id, type, mailServiceId, occurredAt: new Date(), status: type.slice(type.indexOf('.') + 1), more, ...(typeof recipient === 'string' ? { recipient } : {}),
  }]);
  return id;
}

import { newId, type Id } from '../core/ids';
import type { Tx } from '../db/transaction';
import type { otherEventTypes } from './state';
import { insertNotice } from './store/notices';
import { tellWebhooks } from './webhooks/outbox';

export type Notice = {
  mailServiceId: string; type: Exclude<(typeof otherEventTypes)[number], 'webhook.test'>;
  /** Of the domain or the service. */
  status?: string;
  /** The address it is about. */
  recipient?: string;
  /** Stand beside the members every webhook has. */
  facts: Readonly<Record<string, unknown>>;
};

/** What happened to a domain, a service or its suppressions is on record, and goes to the webhooks that asked for its type. */
export async function recordNotice(tx: Tx, notice: Notice): Promise<Id<'evt'>> {
  const id = newId('evt');
  const { facts, ...rest } = notice;
  const occurredAt = await insertNotice(tx, { id, ...notice });
  await tellWebhooks(tx, [{ eventId: id, occurredAt, ...rest, more: facts }]);
  return id;
}

import { rows } from '../../db/client';
import type { Tx } from '../../db/transaction';

/** An event without a message, now; answers when that is. */
export async function insertNotice(tx: Tx, notice: { id: string; mailServiceId: string; type: string; recipient?: string; facts: object }): Promise<Date> {
  const [row] = await rows<{ occurredAt: Date }>(tx, `insert into mail_event (id, mail_service_id, type, source, recipient, facts, occurred_at) values ($1, $2, $3, 'api', $4, $5::json, now())
    returning occurred_at as "occurredAt"`, notice.id, notice.mailServiceId, notice.type, notice.recipient ?? null, JSON.stringify(notice.facts));
  if (!row) throw new Error('The event was not written.');
  return row.occurredAt;
}

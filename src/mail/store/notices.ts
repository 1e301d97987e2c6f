import { execute } from '../../db/client';
import type { Tx } from '../../db/transaction';

/** An event without a message. */
export async function insertNotice(tx: Tx, notice: { id: string; mailServiceId: string; type: string; facts: object }): Promise<void> {
  await execute(tx, `insert into mail_event (id, mail_service_id, type, source, facts, occurred_at) values ($1, $2, $3, 'api', $4::json, now())`,
    notice.id, notice.mailServiceId, notice.type, JSON.stringify(notice.facts));
}

import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';

export type ReportableRecipient = { id: string; position: number; addressKey: string };

/** Recipients of a message in their order; none when it is gone. */
export function reportableRecipients(db: Db, messageId: string): Promise<ReportableRecipient[]> {
  return rows<ReportableRecipient>(db, `select id, position, address_key as "addressKey" from mail_recipient where message_id = $1 order by position`, messageId);
}

/** False when the same bytes came before: a server that was not sure repeats them. */
export async function noteReport(tx: Tx, { kind, digest, messageId }: { kind: 'dsn' | 'arf'; digest: string; messageId: string }): Promise<boolean> {
  return await execute(tx, `insert into mail_provider_event (provider, provider_event_id, type, message_id) values ($1, $2, $1, $3) on conflict do nothing`, kind, digest, messageId) > 0;
}

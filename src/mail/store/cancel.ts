import { execute } from '../../db/client';
import type { Tx } from '../../db/transaction';

/** An attempt that ends deferred ends the recipient. */
export async function markCancelRequested(tx: Tx, messageId: string): Promise<void> {
  await execute(tx, 'update mail_message set cancel_requested_at = coalesce(cancel_requested_at, now()) where id = $1', messageId);
}

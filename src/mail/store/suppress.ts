import { rows } from '../../db/client';
import type { Tx } from '../../db/transaction';
import { disabledWindowHours } from '../rules/suppression';

export type NewSuppression = {
  id: string; mailServiceId: string; address: string; addressKey: string; reason: 'bounce' | 'complaint'; sourceMessageId: string; /** null: for good. */ days: number | null;
};

/**
 * The addresses are suppressed; answers those that were not. One that had ended begins anew, one for a time becomes one
 * for good, and a complaint is graver than a bounce; otherwise a suppression stays as it is. In the order of addresses.
 */
export function insertSuppressions(tx: Tx, wanted: readonly NewSuppression[]): Promise<{ id: string; mailServiceId: string; address: string; reason: string }[]> {
  return rows(tx, `
    with given as (
      select * from json_to_recordset($1::json) as v (id text, "mailServiceId" text, address text, "addressKey" text, reason text, "sourceMessageId" text, days int)),
    written as (
      insert into mail_suppression as s (id, mail_service_id, address, address_key, reason, source_message_id, expires_at)
      select id, "mailServiceId", address, "addressKey", reason, "sourceMessageId", now() + days * interval '1 day' from given order by "mailServiceId", "addressKey"
      on conflict (mail_service_id, address_key) do update set id = case when s.expires_at <= now() then excluded.id else s.id end, reason = excluded.reason, source_message_id = excluded.source_message_id, updated_at = now(),
          expires_at = case when s.expires_at is null or excluded.expires_at is null then null else greatest(s.expires_at, excluded.expires_at) end
        where s.expires_at <= now() or s.expires_at is not null and excluded.expires_at is null or s.reason <> 'complaint' and excluded.reason = 'complaint'
      returning s.id, s.mail_service_id, s.address, s.reason)
    select w.id, w.mail_service_id as "mailServiceId", w.address, w.reason from written w join given g on g.id = w.id`, JSON.stringify(wanted));
}

/** How often the address was refused as disabled (5.2.1) within the window, this time included. */
export async function countDisabled(tx: Tx, { mailServiceId, addressKey }: { mailServiceId: string; addressKey: string }): Promise<number> {
  const [row] = await rows<{ count: number }>(tx, `
    select count(*)::int as count from mail_recipient where mail_service_id = $1 and address_key = $2 and status = 'bounced' and enhanced_code = '5.2.1'
      and fact_at > now() - interval '${disabledWindowHours} hours'`, mailServiceId, addressKey);
  return row?.count ?? 0;
}

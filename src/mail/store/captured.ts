import { rows, type Db } from '../../db/client';

export type CapturedRow = { messageId: string; capturedAt: Date; mode: string; mime: Buffer; envelopes: { from: string; to: string }[] };

const columns = `c.message_id as "messageId", c.captured_at as "capturedAt", m.mode,
  coalesce((select json_agg(json_build_object('from', e.envelope_from, 'to', e.recipient) order by e.captured_at, e.recipient) from mail_capture_envelope e where e.message_id = c.message_id), '[]') as envelopes`;

/** What was captured last, of every service of this installation; of each the beginning. */
export function listCaptured(db: Db, limit: number): Promise<CapturedRow[]> {
  return rows<CapturedRow>(db, `select ${columns}, substring(c.mime for 65536) as mime from mail_capture c join mail_message m on m.id = c.message_id order by c.captured_at desc, c.message_id desc limit $1::int`, limit);
}

export async function findCaptured(db: Db, messageId: string): Promise<CapturedRow | null> {
  const [row] = await rows<CapturedRow>(db, `select ${columns}, c.mime from mail_capture c join mail_message m on m.id = c.message_id where c.message_id = $1`, messageId);
  return row ?? null;
}

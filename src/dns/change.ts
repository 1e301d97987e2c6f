import type { RecordRow } from './store/records';

/** What a version keeps of a record: enough to show the change and to bring the state back. */
export type KeptRecord = Pick<RecordRow,
  'id' | 'type' | 'name' | 'value' | 'ttl' | 'priority' | 'proxied' | 'originProtocol' | 'originPort' | 'originPath' | 'originHostHeader' | 'comment' | 'managed' | 'challenge'>;
export type Change = { recordId: string; before: KeptRecord | null; after: KeptRecord | null };

export function keptFields({ id, type, name, value, ttl, priority, proxied, originProtocol, originPort, originPath, originHostHeader, comment, managed, challenge }: RecordRow): KeptRecord {
  return { id, type, name, value, ttl, priority, proxied, originProtocol, originPort, originPath, originHostHeader, comment, managed, challenge };
}

import type { Actor } from '../../core/caller';
import { execute, rows, type Db } from '../../db/client';
import type { AuditChange } from '../audit';
import type { AuditQuery } from '../schemas';

export type AuditRow = {
  id: string; chain: string; seq: number; actorKind: Actor['kind']; actorId: string | null; actorName: string | null; action: string;
  outcome: 'done' | 'denied'; projectId: string | null; targetType: string | null; targetId: string | null; changes: AuditChange[];
  requestId: string | null; ip: string | null; createdAt: Date; prevHash: string; hash: string;
};

const columns = `id, chain, seq::int as seq, actor_kind as "actorKind", actor_id as "actorId", actor_name as "actorName", action, outcome,
  project_id as "projectId", target_type as "targetType", target_id as "targetId", changes, request_id as "requestId", ip, created_at as "createdAt",
  prev_hash as "prevHash", hash`;

export type AuditFilter = Omit<AuditQuery, 'limit' | 'cursor'>;

/** Newest first: a chain's numbers are its order. */
export function listAuditRows(db: Db, chain: string, filter: AuditFilter, page: { beforeSeq: number | null; limit: number }): Promise<AuditRow[]> {
  return rows<AuditRow>(db, `select ${columns} from audit_entry where chain = $1 and ($2::bigint is null or seq < $2::bigint)
    and ($3::text is null or actor_id = $3) and ($4::text is null or action = $4) and ($5::text is null or target_id = $5)
    and ($6::text is null or project_id = $6) and ($7::text is null or outcome = $7)
    and ($8::timestamptz is null or created_at >= $8::timestamptz) and ($9::timestamptz is null or created_at < $9::timestamptz)
    order by seq desc limit $10::int`,
  chain, page.beforeSeq, filter.actorId ?? null, filter.action ?? null, filter.targetId ?? null, filter.projectId ?? null, filter.outcome ?? null,
  filter.from ?? null, filter.to ?? null, page.limit);
}

/** Oldest first, for checking the chain. */
export function readChain(db: Db, chain: string, afterSeq: number, limit: number): Promise<AuditRow[]> {
  return rows<AuditRow>(db, `select ${columns} from audit_entry where chain = $1 and seq > $2::bigint order by seq limit $3::int`, chain, afterSeq, limit);
}

export type AuditHeadRow = { chain: string; seq: number; hash: string; verifiedSeq: number; firstBadSeq: number | null };

const headColumns = `chain, seq::int as seq, hash, verified_seq::int as "verifiedSeq", first_bad_seq::int as "firstBadSeq"`;

export async function getHead(db: Db, chain: string): Promise<AuditHeadRow | null> {
  const [row] = await rows<AuditHeadRow>(db, `select ${headColumns} from audit_head where chain = $1`, chain);
  return row ?? null;
}

/** Chains in the order of their names, a page after `after`. */
export function listHeads(db: Db, after: string, limit: number): Promise<AuditHeadRow[]> {
  return rows<AuditHeadRow>(db, `select ${headColumns} from audit_head where chain > $1 order by chain limit $2::int`, after, limit);
}

/** Remembers up to where a chain was found whole, and where it was not. */
export async function markVerified(db: Db, chain: string, seq: number, firstBadSeq: number | null): Promise<void> {
  await execute(db, `update audit_head set verified_seq = greatest(verified_seq, $2::bigint), first_bad_seq = $3::bigint where chain = $1`, chain, seq, firstBadSeq);
}

import type { Cursors } from '../core/cursor';
import type { Id } from '../core/ids';
import { readPage, type Page } from '../core/page';
import type { Database, Db } from '../db/client';
import { auditHash } from './audit';
import { getHead, listAuditRows, listHeads, markVerified, readChain, type AuditHeadRow, type AuditRow } from './store/audit';
import type { AuditQuery } from './schemas';

const pageRows = 1_000;
const genesis = '0'.repeat(64);

/** Newest first, 25 unless a limit is given. Errors: `invalid_cursor`. */
export function listAudit(deps: { db: Database; cursors: Cursors }, orgId: Id<'org'>, query: AuditQuery): Promise<Page<AuditRow>> {
  const { limit, cursor, ...filter } = query;
  return readPage(deps.cursors, ['audit', orgId, filter], { limit, cursor }, {
    limitDefault: 25,
    keyOf: (row: AuditRow) => [row.seq],
    fetch: (after, count) => listAuditRows(deps.db.prisma, orgId, filter, { beforeSeq: after === null ? null : Number(after[0]), limit: count }),
  });
}

export type ChainVerdict = { entries: number; headHash: string; firstBadSeq: number | null };

/**
 * Recomputes a chain up to the head that was there when it began: what was changed, dropped or swapped is named by the
 * first number that is not as it was written. `from`: the last number found whole before.
 */
export async function verifyChain(db: Db, chain: string, from = 0, beat?: () => void): Promise<ChainVerdict> {
  const head = await getHead(db, chain);
  if (!head) return { entries: 0, headHash: genesis, firstBadSeq: null };
  let seq = from;
  let hash = from === 0 ? genesis : (await readChain(db, chain, from - 1, 1))[0]?.hash ?? genesis;
  while (seq < head.seq) {
    beat?.();
    const page = await readChain(db, chain, seq, Math.min(pageRows, head.seq - seq));
    const bad = firstBad(page, seq, hash);
    if (bad !== null) return verdict(head, bad);
    seq += page.length;
    hash = page.at(-1)?.hash ?? hash;
  }
  return verdict(head, hash === head.hash || seq > head.seq ? null : head.seq);
}

function verdict(head: AuditHeadRow, firstBadSeq: number | null): ChainVerdict {
  return { entries: head.seq, headHash: head.hash, firstBadSeq };
}

/** An empty page is a tail that was dropped. */
function firstBad(page: readonly AuditRow[], seqBefore: number, hashBefore: string): number | null {
  let seq = seqBefore;
  let hash = hashBefore;
  if (page.length === 0) return seq + 1;
  for (const row of page) {
    seq += 1;
    if (row.seq !== seq || row.prevHash !== hash || row.hash !== rowHash(row)) return seq;
    hash = row.hash;
  }
  return null;
}

function rowHash(row: AuditRow): string {
  const target = row.targetType !== null && row.targetId !== null ? { type: row.targetType, id: row.targetId } : null;
  return auditHash(row.prevHash, {
    id: row.id, chain: row.chain, seq: row.seq, actor: { kind: row.actorKind, id: row.actorId, displayName: row.actorName }, action: row.action,
    outcome: row.outcome, projectId: row.projectId, target, changes: row.changes, requestId: row.requestId, ip: row.ip, createdAt: row.createdAt.toISOString(),
  });
}

/** Checks what every chain has gained since it was last found whole; the chains that are not whole. */
export async function verifyAllChains(db: Db, beat: () => void): Promise<{ chain: string; firstBadSeq: number }[]> {
  const broken: { chain: string; firstBadSeq: number }[] = [];
  for (let after = ''; ;) {
    const heads = await listHeads(db, after, 200);
    for (const head of heads) {
      const { entries, firstBadSeq } = await verifyChain(db, head.chain, head.verifiedSeq, beat);
      await markVerified(db, head.chain, firstBadSeq === null ? entries : firstBadSeq - 1, firstBadSeq);
      if (firstBadSeq !== null) broken.push({ chain: head.chain, firstBadSeq });
    }
    const last = heads.at(-1);
    if (!last) return broken;
    after = last.chain;
  }
}

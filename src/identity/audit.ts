import { createHash } from 'node:crypto';
import { canonicalJson } from '../core/canonical-json';
import type { Cause } from '../core/caller';
import { newId, type Id } from '../core/ids';
import { execute, rows, type Database, type Db } from '../db/client';
import { beforeCommit, inTransaction, type Tx } from '../db/transaction';

export type AuditChange = { field: string; from: unknown; to: unknown };
export type AuditFacts = {
  /** null: the installation's own chain. */
  orgId: Id<'org'> | null;
  projectId: Id<'prj'> | null;
  cause: Cause;
  outcome: 'done' | 'denied';
  target: { type: string; id: string } | null;
  /** View fields only, never a secret. */
  changes?: readonly AuditChange[];
};

const changesMaxBytes = 8_192;
const auditRank = 9;
export const installationChain = 'installation';

/** Head and entry in one statement: the head's row lock orders the writers of a chain and is held for one round trip. */
const appendStatement = `
  with head as (
    update audit_head set seq = seq + 1, prev_hash = hash,
      hash = encode(sha256(decode(hash, 'hex') || convert_to($2::text || (seq + 1)::text || $3::text, 'UTF8')), 'hex')
    where chain = $1 returning seq, prev_hash, hash)
  insert into audit_entry (id, chain, seq, actor_kind, actor_id, actor_name, action, outcome, project_id, target_type, target_id,
    changes, request_id, ip, created_at, prev_hash, hash)
  select $4, $1, head.seq, $5, $6, $7, $8, $9, $10, $11, $12, $13::jsonb, $14, $15, $16::timestamptz, head.prev_hash, head.hash from head`;

/**
 * One entry at the end of the transaction: it is written last of all statements, so chain heads are locked shortest and
 * never deadlock. A rolled-back transaction leaves none. hash = SHA-256(prevHash || RFC 8785 JSON of the other fields).
 */
export function appendAudit(tx: Tx, facts: AuditFacts): void {
  beforeCommit(tx, auditRank, () => write(tx, facts));
}

/** A refused request of a member: one entry per actor, action and minute, in a transaction of its own. */
export async function recordDenial(db: Database, facts: Omit<AuditFacts, 'outcome'>): Promise<void> {
  await inTransaction(db, async (tx) => {
    const chain = await lockHead(tx, facts.orgId);
    const [known] = await rows<{ id: string }>(tx, `select id from audit_entry
      where chain = $1 and actor_id is not distinct from $2 and action = $3 and outcome = 'denied' and created_at >= date_trunc('minute', now()) limit 1`,
    chain, facts.cause.actor.id, facts.cause.action);
    if (!known) await write(tx, { ...facts, outcome: 'denied' });
  });
}

/** The fields under the hash; `seq` is known only under the head's lock, so the text is cut where it stands. */
export type AuditRecord = {
  id: string; chain: string; seq: number; actor: Cause['actor']; action: string; outcome: string; projectId: string | null;
  target: AuditFacts['target']; changes: unknown; requestId: string | null; ip: string | null; createdAt: string;
};

export function auditHash(prevHash: string, record: AuditRecord): string {
  return createHash('sha256').update(Buffer.from(prevHash, 'hex')).update(canonicalJson(record)).digest('hex');
}

async function write(tx: Tx, facts: AuditFacts): Promise<void> {
  const chain = facts.orgId ?? installationChain;
  const { actor, action, requestId, ip } = facts.cause;
  const id = newId('aud');
  const createdAt = new Date().toISOString();
  const changes = bounded(facts.changes ?? []);
  const target = facts.target;
  const record = { id, chain, actor, action, outcome: facts.outcome, projectId: facts.projectId, target, changes, requestId, ip, createdAt };
  const [before, after] = aroundSeq(record);
  const values = [chain, before, after, id, actor.kind, actor.id, actor.displayName, action, facts.outcome, facts.projectId,
    target?.type ?? null, target?.id ?? null, JSON.stringify(changes), requestId, ip, createdAt];
  if (await execute(tx, appendStatement, ...values) === 1) return;
  await lockHead(tx, facts.orgId);
  await execute(tx, appendStatement, ...values);
}

async function lockHead(tx: Db, orgId: Id<'org'> | null): Promise<string> {
  const chain = orgId ?? installationChain;
  await execute(tx, 'insert into audit_head (chain) values ($1) on conflict (chain) do nothing', chain);
  await rows(tx, 'select 1 as one from audit_head where chain = $1 for update', chain);
  return chain;
}

/** Canonical JSON before and after the value of `seq`. Only `target` sorts behind it, so the last such member is ours. */
function aroundSeq(record: Omit<AuditRecord, 'seq'>): [string, string] {
  const tail = `,"target":${canonicalJson(record.target)}}`;
  const whole = canonicalJson({ ...record, seq: 0 });
  const before = whole.slice(0, whole.length - tail.length - 1);
  return [before, tail];
}

/** Beyond 8 KiB the values are left out and the names of the fields stay. */
function bounded(changes: readonly AuditChange[]): readonly AuditChange[] {
  const plain: AuditChange[] = changes.map(({ field, from, to }) => ({ field, from: from ?? null, to: to ?? null }));
  if (Buffer.byteLength(JSON.stringify(plain)) <= changesMaxBytes) return plain;
  return plain.map(({ field }) => ({ field, from: null, to: null })).slice(0, 100);
}

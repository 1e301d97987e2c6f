/**
 * What the audit chain costs: eight writers on one organisation, each transaction one small write, with and without its
 * entry, in alternating rounds of the same run. The peer is the same write alone.
 */
import { systemCause } from '../src/core/caller';
import { newId } from '../src/core/ids';
import { execute, type Database } from '../src/db/client';
import { inTransaction } from '../src/db/transaction';
import { appendAudit } from '../src/identity/service';
import { median, print, withBenchDatabase } from './support/database';

const writers = 8;
const perRound = 100;
const rounds = Number(process.env['ROUNDS'] ?? 6);

async function main(db: Database): Promise<void> {
  const orgId = newId('org');
  await db.pool.query(`insert into organization (id, name, slug) values ($1, 'Bench', 'bench')`, [orgId]);
  const write = (audited: boolean) => inTransaction(db, async (tx) => {
    const id = newId('prj');
    await execute(tx, `insert into project (id, org_id, slug, display_name) values ($1, $2, $3, 'Bench')`, id, orgId, id.slice(-26));
    if (audited) appendAudit(tx, { orgId, projectId: id, cause: systemCause('bench'), outcome: 'done', target: { type: 'project', id }, changes: [{ field: 'slug', from: null, to: id }] });
  });
  await round(() => write(true));
  const rates: Record<'plain' | 'audited', number[]> = { plain: [], audited: [] };
  const alone: Record<'plain' | 'audited', number[]> = { plain: [], audited: [] };
  for (let i = 0; i < rounds; i++) {
    rates.plain.push(await round(() => write(false)));
    rates.audited.push(await round(() => write(true)));
    for (let n = 0; n < 100; n++) {
      alone.plain.push(await timed(() => write(false)));
      alone.audited.push(await timed(() => write(true)));
    }
  }
  print(`${writers} writers, one organisation: ${median(rates.audited).toFixed(0)} audited writes/s (target 500), ${median(rates.plain).toFixed(0)} without audit`);
  print(`one writer: p50 ${median(alone.audited).toFixed(2)} ms with, ${median(alone.plain).toFixed(2)} ms without; added ${(median(alone.audited) - median(alone.plain)).toFixed(2)} ms (target 1)`);
}

/** Writes per second. */
async function round(write: () => Promise<void>): Promise<number> {
  const begun = process.hrtime.bigint();
  await Promise.all(Array.from({ length: writers }, async () => {
    for (let i = 0; i < perRound; i++) await write();
  }));
  return (writers * perRound) / (Number(process.hrtime.bigint() - begun) / 1e9);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - begun) / 1e6;
}

void withBenchDatabase(main);

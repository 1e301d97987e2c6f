import { limit } from '../billing/service';
import { systemCause } from '../core/caller';
import { TryLater } from '../core/job-errors';
import type { Id } from '../core/ids';
import { inTransaction, type Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { openOperation, openOperationsOf, settleOperation, type OperationRow } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import type { DnsDeps } from './deps';
import { trimDeleted } from './store/records';
import { dropChangeSets, dropContent, dropDeletedRecords, listWithDeleted, markPurged, readPurge, type ZoneRef } from './store/retention';

type PurgeDeps = Pick<DnsDeps, 'db'>;
type RetentionDeps = PurgeDeps & { config: Pick<DnsDeps['config'], 'DNS_RECORD_PURGE_DAYS'> };

const rowsMax = 2_000;
const changeSetDays = 90;
/** Deleted records a zone keeps, in multiples of those it may have; without a limit as if it were this one. */
const deletedFactor = 10;
const recordLimitDefault = 10_000;

/** The zone's time to be restored is over: its workflow removes what is left of it. */
export function openPurgeOperation(tx: Tx, zone: ZoneRef): Promise<OperationRow> {
  return openOperation(tx, {
    orgId: zone.orgId, projectId: zone.projectId, kind: 'dns.purge', resourceId: zone.id, summary: `Purge DNS zone ${zone.domain}`, requestId: null,
    start: { workflow: 'purgeZone', workflowId: workflowIds.purgeZone(zone.id), queue: 'dns', payload: { zoneId: zone.id } },
  });
}

/**
 * Nothing of a deleted zone is left but its row. A zone that was restored or purged meanwhile stays as it is. Errors: TryLater
 * while a name server still answers for it. `beat`: called between pages.
 */
export async function removeZoneContent(deps: PurgeDeps, zoneId: string, beat: () => void): Promise<void> {
  const purge = await readPurge(deps.db.prisma, zoneId);
  if (purge?.answered) throw new TryLater('A name server still answers for the zone.', { expected: true });
  for (let left = purge ? 1 : 0; left > 0; left = await inTransaction(deps.db, (tx) => dropContent(tx, zoneId, rowsMax))) beat();
}

/** The zone is 404 for good; its open `dns.purge` operations are settled, as cancelled when it was restored. */
export async function purgeZone(deps: PurgeDeps, zoneId: string): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const purged = await markPurged(tx, zoneId);
    const operations = await openOperationsOf(tx, zoneId, 'dns.purge');
    for (const operation of operations) await settleOperation(tx, operation.id, purged ? 'succeeded' : 'cancelled');
    const [operation] = operations;
    if (!purged || !operation?.projectId) return;
    appendAudit(tx, {
      orgId: operation.orgId, projectId: operation.projectId, cause: systemCause('purgeDnsZone'), outcome: 'done', target: { type: 'dnsZone', id: zoneId },
      changes: [{ field: 'status', from: 'deleted', to: 'purged' }],
    });
  });
}

export type Retained = { records: number; changeSets: number; trimmedZones: number };

/** Deleted records and change sets are gone after their time, and beyond the number that a zone keeps. */
export async function applyRetention(deps: RetentionDeps, beat: () => void): Promise<Retained> {
  const db = deps.db.prisma;
  const paged = async (page: () => Promise<number>): Promise<number> => {
    for (let total = 0; ;) {
      beat();
      const gone = await page();
      total += gone;
      if (gone < rowsMax) return total;
    }
  };
  const records = await paged(() => dropDeletedRecords(db, deps.config.DNS_RECORD_PURGE_DAYS, rowsMax));
  const changeSets = await paged(() => dropChangeSets(db, changeSetDays, rowsMax));
  return { records, changeSets, trimmedZones: await trimZones(deps, beat) };
}

/** A write trims its own zone; a smaller plan leaves too many in zones nobody writes to. */
async function trimZones(deps: PurgeDeps, beat: () => void): Promise<number> {
  const limits = new Map<Id<'org'>, number>();
  const keepOf = async (orgId: Id<'org'>): Promise<number> => {
    const known = limits.get(orgId) ?? deletedFactor * (await limit(deps.db.prisma, { orgId }, 'dns.records') ?? recordLimitDefault);
    limits.set(orgId, known);
    return known;
  };
  let trimmed = 0;
  for (let after = ''; ;) {
    const page = await listWithDeleted(deps.db.prisma, after, 500);
    for (const { id, orgId } of page) {
      beat();
      const keep = await keepOf(orgId);
      if (await inTransaction(deps.db, (tx) => trimDeleted(tx, id, keep)) > 0) trimmed++;
    }
    const last = page.at(-1);
    if (!last) return trimmed;
    after = last.id;
  }
}

import { storeUsage, type UsageFact } from '../billing/service';
import type { Clock } from '../core/clock';
import type { Database } from '../db/client';
import { inTransaction } from '../db/transaction';
import { pruneSteps, turnPartitions } from './store/maintenance';
import { advanceReport, lockReport, readHour } from './store/usage';

const rowsMax = 2_000;
const hourMs = 3_600_000;
/** Workers write within a second; what a spool brings later than this is not billed. */
const settleMs = 15 * 60_000;
const factsMax = 1_000;

/** Partitions for three days exist, what is past its time is gone. Safe at any time. `beat` is called between pages. */
export async function maintain(deps: { db: Database }, beat: () => void): Promise<{ dropped: number; pruned: number }> {
  const dropped = await inTransaction(deps.db, turnPartitions);
  let pruned = 0;
  for (const step of pruneSteps) {
    for (let gone = rowsMax; gone >= rowsMax; pruned += gone) {
      beat();
      gone = await step(deps.db.prisma, rowsMax);
    }
  }
  return { dropped, pruned };
}

/** Billing knows the requests of every hour that is over; each hour is told once. Answers how many hours that were. */
export async function reportUsage(deps: { db: Database; clock: Clock }, beat: () => void): Promise<{ hours: number }> {
  for (let hours = 0; ; hours++) {
    beat();
    if (!await reportHour(deps)) return { hours };
  }
}

function reportHour({ db, clock }: { db: Database; clock: Clock }): Promise<boolean> {
  return inTransaction(db, async (tx) => {
    const hour = await lockReport(tx);
    if (hour.getTime() + hourMs + settleMs > clock.now().getTime()) return false;
    const facts = (await readHour(tx, hour)).map(({ zoneId, orgId, requests }): UsageFact => (
      { source: 'gateway', key: `gw:${zoneId}:${hour.toISOString().slice(0, 13)}`, metric: 'dns.gateway_requests', orgId, resourceId: orgId, quantity: requests, occurredAt: hour }
    ));
    for (let i = 0; i < facts.length; i += factsMax) await storeUsage(tx, facts.slice(i, i + factsMax));
    await advanceReport(tx, new Date(hour.getTime() + hourMs));
    return true;
  });
}

import type { Database } from '../db/client';
import { dropOldEvents, ensurePartitions, purgeSteps } from './store/retention';

const batchMax = 1_000;

/** What is kept for a time is gone after it (contract mail.md §7), in batches; partitions for the months to come exist. Safe at any time. */
export async function purgeExpiredMail(deps: { db: Database; config: { MAIL_CONTENT_RETENTION_DAYS: number } }, beat: () => void = () => undefined): Promise<{ purged: number }> {
  let purged = 0;
  await ensurePartitions(deps.db.prisma);
  for (const purge of purgeSteps(deps.config.MAIL_CONTENT_RETENTION_DAYS)) {
    for (let count = batchMax; count === batchMax;) {
      count = await purge(deps.db.prisma, batchMax);
      purged += count;
      beat();
    }
  }
  await dropOldEvents(deps.db.prisma);
  return { purged };
}

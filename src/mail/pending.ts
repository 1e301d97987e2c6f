import { AppError } from '../core/errors';
import type { Database } from '../db/client';
import { readPending } from './store/accept';

/** Refuses new mail while too much waits for a workflow (contract mail.md §5). */
export interface PendingMail {
  /** Errors: `too_many_pending`. */
  requireRoom(): Promise<void>;
}

const refreshMs = 5_000;
/** Known for longer than this it is asked anew before anybody is let in. */
const staleMs = 10_000;
const retryAfterSeconds = 30;

type Limits = { countMax: number; ageSecondsMax: number };

/** What waits is counted at most every five seconds, when somebody sends; while mail keeps coming, nobody waits for the count. */
export function createPendingMail(database: Database, { countMax, ageSecondsMax }: Limits): PendingMail {
  let known: { full: boolean; readAt: number } | null = null;
  let reading: Promise<void> | null = null;
  const read = async () => {
    const { count, oldestSeconds } = await readPending(database.prisma, countMax);
    known = { full: count > countMax || oldestSeconds > ageSecondsMax, readAt: performance.now() };
  };
  return {
    async requireRoom() {
      const ageMs = known ? performance.now() - known.readAt : Infinity;
      if (ageMs > refreshMs) {
        reading ??= read().finally(() => {
          reading = null;
        });
        reading.catch(() => undefined);
      }
      if (ageMs > staleMs) await reading;
      if (known?.full) throw new AppError('too_many_pending', 'Too much mail waits to be sent. Try again in half a minute.', {}, { retryAfterSeconds });
    },
  };
}

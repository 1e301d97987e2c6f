import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../core/log';
import { claimDueReports, markReportDone, nextReportInMs } from '../store/captures';
import { acceptReport, type IntakeDeps } from './accept';

const batchMax = 20;
const idleMaxMs = 1_000;
const failureMs = 2_000;

/** Feeds the intake with what the capture transport planned, when it is due, as if it had come by SMTP. */
export function startSimulatedReports(deps: IntakeDeps & { readonly log: Log }): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const run = async () => {
    while (!stopping.signal.aborted) {
      const waitMs = await feedDueReports(deps).catch((error: unknown) => {
        deps.log.warn({ err: error }, 'simulated reports wait for the database');
        return failureMs;
      });
      if (waitMs > 0) await pause(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** One round; answers how long to wait for the next. */
export async function feedDueReports(deps: IntakeDeps): Promise<number> {
  const due = await claimDueReports(deps.db.prisma, batchMax);
  for (const { id, envelopeTo, mime } of due) {
    await acceptReport(deps, envelopeTo, Buffer.from(mime));
    await markReportDone(deps.db.prisma, id);
  }
  if (due.length > 0) return 0;
  return Math.min(idleMaxMs, Math.max(1, await nextReportInMs(deps.db.prisma) ?? idleMaxMs));
}

import type { Log } from '../core/log';
import type { Database } from '../db/client';
import { claimDueMails, markMailDispatched } from './account-mail';

/** Starts one mail's workflow; deps.ts gives Temporal's, bounded by its deadline. */
export type StartMail = (mailId: string) => Promise<void>;
type OutboxDeps = { db: Database; log: Log; start: StartMail };

const inFlightMax = 32;
const batchMax = 20;
const pollMs = 2_000;

/** Starts after the commit, bounded and never awaited: what fails or does not fit is the relay's. */
export function createMailDispatcher(deps: OutboxDeps): { start(mailId: string): void; drain(): Promise<void> } {
  const inFlight = new Set<Promise<void>>();
  return {
    start(mailId) {
      if (inFlight.size >= inFlightMax) return;
      const attempt = startOne(deps, mailId).finally(() => inFlight.delete(attempt));
      inFlight.add(attempt);
    },
    drain: async () => void (await Promise.allSettled(inFlight)),
  };
}

/** The row is the outbox: whatever is pending without a run is started again, by one relay each, until it is settled. */
export function startMailRelay(deps: OutboxDeps): { stop(): Promise<void> } {
  let wake: () => void = () => undefined;
  let stopped = false;
  const run = async () => {
    while (!stopped) {
      const claimed = await claimDueMails(deps.db.prisma, batchMax).catch((error: unknown) => {
        deps.log.warn({ err: error }, 'the mail relay cannot reach the database');
        return [];
      });
      await Promise.all(claimed.map((mailId) => startOne(deps, mailId)));
      if (claimed.length < batchMax && !stopped) await new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, pollMs).unref();
      });
    }
  };
  const running = run();
  return {
    async stop() {
      stopped = true;
      wake();
      await running;
    },
  };
}

async function startOne({ db, log, start }: OutboxDeps, mailId: string): Promise<void> {
  try {
    await start(mailId);
    await markMailDispatched(db.prisma, mailId);
  } catch (error) {
    log.warn({ mailId, err: error }, 'a start of an account mail is left to the relay');
  }
}

import type { Log } from '../core/log';
import type { Metrics } from '../core/metrics';
import type { Database } from '../db/client';
import { workflowIds } from '../temporal/ids';
import { markDispatched, notifyWaiting } from './store/dispatch';
import { TokenBucket } from './token-bucket';

/** A message and whose it is, for those who look for its job. */
export type Dispatched = { id: string; orgId: string; projectId: string };
/** A start of `deliverMessage`, within its deadline; deps.ts gives Temporal's. */
export type StartDelivery = (message: Dispatched) => Promise<void>;

/** What an API process starts itself after its 202: a few a second, the relay does the rest. */
export interface MailStarts {
  /** Whether this process will start the next message: then the relay leaves it alone for two seconds. */
  claim(): boolean;
  /** After the commit. Never rejects and is not awaited. */
  accepted(message: Dispatched, claimed: boolean): void;
  /** Resolves when nothing is in flight. */
  drain(): Promise<void>;
}

const failuresMax = 5;
const halfOpenMs = 2_000;
const notifyEveryMs = 10;
/** So many times as many sends as starts in a second are a flood: a run for one of them costs what a batch does. */
const floodFactor = 20;

type Deps = {
  db: Database; log: Log; metrics: Pick<Metrics, 'operationStarts'>; start: StartDelivery; perSecond: number;
  /** A clock that does not go back. */
  nowMs?: () => number;
};

/** Counts what it is asked about; true while `perSecond` or more come in a second, and for the second after. */
function floodGauge(perSecond: number, nowMs: () => number): () => boolean {
  let second = { at: nowMs(), count: 0, before: 0 };
  return () => {
    const now = nowMs();
    if (now - second.at >= 1_000) second = { at: now, count: 0, before: now - second.at < 2_000 ? second.count : 0 };
    second.count += 1;
    return second.count > perSecond || second.before > perSecond;
  };
}

/** Closed after five failures in a row; then one start is tried every two seconds; none in a flood, which goes in batches. */
export function createMailStarts({ db, log, metrics, start, perSecond, nowMs = () => performance.now() }: Deps): MailStarts {
  const bucket = new TokenBucket(perSecond, nowMs);
  const flooded = floodGauge(perSecond * floodFactor, nowMs);
  const inFlight = new Set<Promise<void>>();
  let failures = 0;
  let openUntil = 0;
  let notifying: Promise<void> | null = null;
  const startOne = async (message: Dispatched) => {
    try {
      await start(message);
      failures = 0;
      metrics.operationStarts.inc({ by: 'mail', result: 'started' });
      await markDispatched(db, [message.id], workflowIds.deliverMessage(message.id));
    } catch (error) {
      failures += 1;
      if (failures >= failuresMax) openUntil = nowMs() + halfOpenMs;
      metrics.operationStarts.inc({ by: 'mail', result: 'failed' });
      log.warn({ messageId: message.id, err: error }, 'a start of a delivery is left to the relay');
    }
  };
  const notifySoon = () => {
    notifying ??= new Promise<void>((done) => setTimeout(done, notifyEveryMs)).then(() => {
      notifying = null;
      return notifyWaiting(db);
    }).catch((error: unknown) => log.warn({ err: error }, 'the relay was not told of waiting mail'));
  };
  return {
    claim() {
      if (flooded() || (failures >= failuresMax && nowMs() < openUntil)) return false;
      if (failures >= failuresMax) openUntil = nowMs() + halfOpenMs;
      return bucket.take();
    },
    accepted(message, claimed) {
      if (!claimed) return notifySoon();
      const attempt = startOne(message).finally(() => inFlight.delete(attempt));
      inFlight.add(attempt);
    },
    drain: async () => void (await Promise.allSettled([...inFlight, notifying])),
  };
}

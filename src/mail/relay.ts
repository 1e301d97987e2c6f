import type { Log } from '../core/log';
import type { Metrics } from '../core/metrics';
import type { Database } from '../db/client';
import type { Listener } from '../db/listen';
import { workflowIds } from '../temporal/ids';
import { claimWaiting, markDispatched, nextWaitingInMs, releaseWaiting, waitingChannel } from './store/dispatch';
import type { Dispatched, StartDelivery } from './starts';
import { TokenBucket } from './token-bucket';

/** A start of `deliverBatch`; `taken` when a run of this id was started before. */
export type StartBatch = (messageIds: readonly string[]) => Promise<'started' | 'taken'>;

/** Starts workflows for mail that waits: paced, so that a burst does not queue inside Temporal. */
export interface MailRelay {
  /** Ends after the starts that are in flight. */
  stop(): Promise<void>;
}

const pollMs = 1_000;
/** A workflow costs as much as the delivery of several mails: in a flood claims lie this far apart, so that batches fill. */
const fillMs = 250;
/** Shares of a full batch: so much in one claim is a flood, and still is one when it had `fillMs` to gather. */
const floodFrom = 0.2;
const floodWhile = 0.66;
const failureMinMs = 250;
const failureMaxMs = 5_000;

export type RelayDeps = {
  db: Database; listener: Listener; log: Log; metrics: Pick<Metrics, 'operationStarts'>;
  startDelivery: StartDelivery; startBatch: StartBatch; startsPerSecond: number; batchSize: number;
};

/** Any number of relays may run: a message is claimed by one of them, and by another after 30 s when nothing came of it. */
export function startMailDeliveryRelay(deps: RelayDeps): MailRelay {
  const bucket = new TokenBucket(deps.startsPerSecond);
  const sleeper = createSleeper();
  const state = { stopped: false, failures: 0, flood: false };
  const unlisten = deps.listener.listen(waitingChannel, () => sleeper.wake());
  const running = (async () => {
    while (!state.stopped) {
      const pauseMs = await round(deps, bucket, state).catch((error: unknown) => {
        deps.log.warn({ err: error }, 'the relay of mail cannot reach the database');
        return failurePause(state);
      });
      if (!state.stopped && pauseMs > 0) await sleeper.sleep(pauseMs, state.failures === 0 && !state.flood && bucket.available() > 0);
    }
  })();
  return {
    async stop() {
      state.stopped = true;
      unlisten();
      sleeper.wake(true);
      await running;
    },
  };
}

/** One claim and its starts. Returns how long to pause. */
async function round(deps: RelayDeps, bucket: TokenBucket, state: { failures: number; flood: boolean }): Promise<number> {
  const tokens = state.failures > 0 ? Math.min(1, bucket.available()) : bucket.available();
  if (tokens === 0) return bucket.msUntilToken();
  const claimed = await claimWaiting(deps.db, tokens * deps.batchSize);
  state.flood = isFlood(claimed.length, { tokens, batchSize: deps.batchSize, before: state.flood });
  if (claimed.length === 0) return Math.min(pollMs, Math.max(1, await nextWaitingInMs(deps.db) ?? pollMs));
  const groups = claimed.length <= tokens ? claimed.map((message) => [message]) : chunked(claimed, deps.batchSize);
  bucket.take(groups.length);
  const failed = (await Promise.all(groups.map((group) => startGroup(deps, group)))).flat();
  if (failed.length === 0) {
    state.failures = 0;
    return state.flood ? fillMs : claimed.length < tokens ? 1 : 0;
  }
  state.flood = false;
  await releaseWaiting(deps.db.prisma, failed.map(({ id }) => id));
  return failurePause(state);
}

/** Whether what was claimed goes in batches that a pause would fill; where more waits than may be started, a pause gains nothing. */
export function isFlood(claimed: number, { tokens, batchSize, before }: { tokens: number; batchSize: number; before: boolean }): boolean {
  return claimed > tokens && claimed < tokens * batchSize && claimed >= batchSize * (before ? floodWhile : floodFrom);
}

/** Answers the messages that could not be started. */
async function startGroup(deps: RelayDeps, group: readonly Dispatched[]): Promise<readonly Dispatched[]> {
  const [first] = group;
  if (!first) return [];
  if (group.length === 1) return startSingle(deps, first);
  try {
    const ids = group.map(({ id }) => id);
    if (await deps.startBatch(ids) === 'taken') return (await Promise.all(group.map((message) => startSingle(deps, message)))).flat();
    deps.metrics.operationStarts.inc({ by: 'mail-relay', result: 'started' });
    await markDispatched(deps.db, ids, workflowIds.deliverBatch(first.id));
    return [];
  } catch (error) {
    return failedStart(deps, error, group);
  }
}

async function startSingle(deps: RelayDeps, message: Dispatched): Promise<readonly Dispatched[]> {
  try {
    await deps.startDelivery(message);
    deps.metrics.operationStarts.inc({ by: 'mail-relay', result: 'started' });
    await markDispatched(deps.db, [message.id], workflowIds.deliverMessage(message.id));
    return [];
  } catch (error) {
    return failedStart(deps, error, [message]);
  }
}

function failedStart({ log, metrics }: RelayDeps, error: unknown, group: readonly Dispatched[]): readonly Dispatched[] {
  metrics.operationStarts.inc({ by: 'mail-relay', result: 'failed' });
  log.warn({ err: error, messages: group.length }, 'a start of deliveries failed');
  return group;
}

function failurePause(state: { failures: number }): number {
  state.failures += 1;
  return Math.min(failureMaxMs, failureMinMs * 2 ** (state.failures - 1));
}

function chunked<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}

/** A sleep that news of waiting mail cuts short, also when it came before; `wakeable` false: only the end does. */
function createSleeper() {
  let news = false;
  let wakeNow: (force: boolean) => void = () => undefined;
  return {
    wake(force = false): void {
      news = true;
      wakeNow(force);
    },
    sleep: (ms: number, wakeable: boolean) => new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        wakeNow = () => undefined;
        news = false;
        resolve();
      };
      const timer = setTimeout(done, ms);
      wakeNow = (force) => {
        if (force || wakeable) done();
      };
      if (news && wakeable) done();
    }),
  };
}

import type { Log } from '../core/log';
import type { Metrics } from '../core/metrics';
import type { Database } from '../db/client';
import type { Listener } from '../db/listen';
import type { Temporal } from '../temporal/connection';
import { isUnavailable, startOperation } from './dispatcher';
import { claimDue, nextDueInMs, releaseClaims, undispatched } from './outbox';
import type { OperationRow } from './store';

/** Starts what the API could not: it was killed after the commit, or Temporal was away, or too much was in flight. */
export interface Relay {
  /** Ends after the starts that are in flight. */
  stop(): Promise<void>;
}

const batchMax = 20;
const idleMaxMs = 5_000;
const failureMinMs = 250;
const failureMaxMs = 5_000;
/** A row comes due this long after it was written: until then its start is the API's. */
const graceMs = 2_100;

type RelayDeps = { database: Database; temporal: Temporal; listener: Listener; log: Log; metrics: Pick<Metrics, 'operationStarts' | 'operationsUndispatched' | 'operationsUndispatchedAgeSeconds'> };

/**
 * Any number of relays may run: a row is claimed by one of them. While Temporal is away one row at a time is tried, ever
 * more slowly, and nothing else is claimed; while the database is away the loop waits and goes on.
 */
export function startRelay(deps: RelayDeps): Relay {
  const sleeper = createSleeper();
  const state = { stopped: false, failures: 0 };
  const unlisten = deps.listener.listen('operation', (payload) => {
    if (payload === null) sleeper.wakeWithin(0);
    else if (payload.endsWith(':pending')) sleeper.wakeWithin(graceMs);
  });
  const running = run(deps, state, sleeper);
  return {
    async stop() {
      state.stopped = true;
      unlisten();
      sleeper.wakeWithin(0);
      await running;
    },
  };
}

async function run(deps: RelayDeps, state: { stopped: boolean; failures: number }, sleeper: Sleeper): Promise<void> {
  while (!state.stopped) {
    const pauseMs = await round(deps, state).catch((error: unknown) => {
      deps.log.warn({ err: error }, 'the relay cannot reach the database');
      return failurePause(state);
    });
    if (!state.stopped && pauseMs > 0) await sleeper.sleep(pauseMs);
  }
}

/** One claim and its starts. Returns how long to pause. */
async function round(deps: RelayDeps, state: { failures: number }): Promise<number> {
  const db = deps.database.prisma;
  const claimed = await claimDue(db, state.failures > 0 ? 1 : batchMax);
  const outcomes = await Promise.all(claimed.map((row) => attempt(deps, row)));
  const unavailable = claimed.filter((_, index) => outcomes[index] === 'unavailable');
  if (unavailable.length > 0) {
    await releaseClaims(db, unavailable.map((row) => row.id));
    await observe(deps);
    return failurePause(state);
  }
  state.failures = 0;
  if (claimed.length > 0) return 0;
  await observe(deps);
  return Math.min(idleMaxMs, await nextDueInMs(db) ?? idleMaxMs);
}

async function attempt(deps: RelayDeps, row: OperationRow): Promise<'started' | 'failed' | 'unavailable'> {
  const result = await startOperation(deps, row).then(() => 'started' as const, (error: unknown) => {
    const unavailable = isUnavailable(error);
    deps.log.warn({ operationId: row.id, attempts: row.attempts, err: error }, unavailable ? 'Temporal does not answer' : 'a start was refused');
    return unavailable ? 'unavailable' as const : 'failed' as const;
  });
  deps.metrics.operationStarts.inc({ by: 'relay', result });
  return result;
}

async function observe({ database, metrics }: RelayDeps): Promise<void> {
  const { count, oldestSeconds } = await undispatched(database.prisma);
  metrics.operationsUndispatched.set(count);
  metrics.operationsUndispatchedAgeSeconds.set(oldestSeconds);
}

function failurePause(state: { failures: number }): number {
  state.failures += 1;
  return Math.min(failureMaxMs, failureMinMs * 2 ** (state.failures - 1));
}

type Sleeper = ReturnType<typeof createSleeper>;

/** A sleep that can be cut short, also before it begins. */
function createSleeper() {
  let wakeAt = Infinity;
  let rearm: () => void = () => undefined;
  return {
    wakeWithin(ms: number): void {
      wakeAt = Math.min(wakeAt, Date.now() + ms);
      rearm();
    },
    sleep: (ms: number) => new Promise<void>((resolve) => {
      const until = Date.now() + ms;
      let timer: NodeJS.Timeout | undefined;
      rearm = () => {
        clearTimeout(timer);
        timer = setTimeout(() => {
          wakeAt = Infinity;
          rearm = () => undefined;
          resolve();
        }, Math.max(0, Math.min(until, wakeAt) - Date.now()));
      };
      rearm();
    }),
  };
}

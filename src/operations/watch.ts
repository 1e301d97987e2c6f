import type { Database } from '../db/client';
import type { Listener } from '../db/listen';
import { getOperation, type OperationRow } from './store';
import { isFinal } from './view';

/** Lets requests wait for the end of operations: one notification channel for all of them. */
export interface OperationWatch {
  /** The operation once it is final, or as it is after `waitMs`; null when it does not exist. */
  awaitFinal(operationId: string, waitMs: number): Promise<OperationRow | null>;
  /** Ends all waits at once with what is known; for a drain. */
  close(): void;
}

/** Notifications can be lost with the connection, so every wait also looks for itself this often. */
const rereadMs = 5_000;

export function createOperationWatch(deps: { database: Database; listener: Listener }): OperationWatch {
  const waiting = new Map<string, Set<() => void>>();
  let closed = false;
  const wakeAll = () => waiting.forEach((wakes) => wakes.forEach((wake) => wake()));
  const stop = deps.listener.listen('operation', (payload) => {
    if (payload === null) wakeAll();
    else waiting.get(payload.split(':', 1)[0] ?? '')?.forEach((wake) => wake());
  });

  return {
    async awaitFinal(operationId, waitMs) {
      const until = Date.now() + waitMs;
      const call = bell();
      const wakes = waiting.get(operationId) ?? new Set();
      waiting.set(operationId, wakes.add(call.ring));
      try {
        for (;;) {
          const row = await getOperation(deps.database.prisma, operationId);
          const leftMs = until - Date.now();
          if (!row || isFinal(row.state) || leftMs <= 0 || closed) return row;
          await call.heardWithin(Math.min(leftMs, rereadMs));
        }
      } finally {
        wakes.delete(call.ring);
        if (wakes.size === 0) waiting.delete(operationId);
      }
    },
    close() {
      closed = true;
      stop();
      wakeAll();
    },
  };
}

/** Remembers a ring that comes while nobody waits. */
function bell(): { ring: () => void; heardWithin(ms: number): Promise<void> } {
  let rung = false;
  let wake: () => void = () => undefined;
  return {
    ring: () => {
      rung = true;
      wake();
    },
    heardWithin: (ms) => new Promise((resolve) => {
      const timer = setTimeout(done, ms);
      wake = done;
      if (rung) done();
      function done(): void {
        rung = false;
        clearTimeout(timer);
        wake = () => undefined;
        resolve();
      }
    }),
  };
}

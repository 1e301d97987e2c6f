import type { UsedTokens } from './challenge';
import type { LimitDelta, LimitPenalty, RateLimits } from './limits';

/** What workers of one server tell each other, by way of the process that forked them. */
export type SharedMessage =
  | { gatewayShared: 'counts'; deltas: readonly LimitDelta[] }
  | { gatewayShared: 'penalty'; penalty: LimitPenalty }
  | { gatewayShared: 'token'; salt: string };

export function isSharedMessage(message: unknown): message is SharedMessage {
  return typeof message === 'object' && message !== null && 'gatewayShared' in message;
}

const exchangeMs = 100;
const sweepMs = 5_000;

/** Shares limits and spent tokens of this worker: counts every 100 ms, penalties and tokens at once. `send` null: there is nobody else. */
export function startExchange(shared: { limits: RateLimits; used: UsedTokens }, send: ((message: SharedMessage) => void) | null, now: () => number = Date.now): { receive(message: SharedMessage): void; stop(): void } {
  const { limits, used } = shared;
  const sweep = setInterval(() => limits.sweep(now()), sweepMs).unref();
  const tell = send && setInterval(() => {
    const deltas = limits.takeDeltas();
    if (deltas.length > 0) send({ gatewayShared: 'counts', deltas });
  }, exchangeMs).unref();
  if (send) {
    limits.onPenalty = (penalty) => send({ gatewayShared: 'penalty', penalty });
    used.onSpent = (salt) => send({ gatewayShared: 'token', salt });
  }
  return {
    receive(message) {
      if (message.gatewayShared === 'counts') limits.merge(message.deltas);
      else if (message.gatewayShared === 'penalty') limits.penalise(message.penalty, now());
      else used.learn(message.salt, now());
    },
    stop() {
      clearInterval(sweep);
      if (tell) clearInterval(tell);
    },
  };
}

type Peer = { send(message: SharedMessage): unknown; isConnected(): boolean };

/** In the process that forked the workers: hands what one says to all others. */
export function relayShared(message: unknown, from: Peer, workers: Iterable<Peer | undefined>): void {
  if (!isSharedMessage(message)) return;
  for (const worker of workers) if (worker && worker !== from && worker.isConnected()) worker.send(message);
}

import type { Log } from '../../core/log';
import type { Metrics } from '../../core/metrics';

/** A provider that answered 401 or 403: it refuses our credentials, whatever the mail. */
export type Refusal = { transport: string; messageId: string; code: number | null };

const saidEveryMs = 60_000;

/** Every refusal is counted, and one a minute is logged as an alert: every mail meets the same one. */
export function createRefusalAlert({ log, metrics }: { log: Log; metrics: Pick<Metrics, 'mailTransportRefusals'> }, nowMs: () => number = () => performance.now()): (refusal: Refusal) => void {
  let saidAt = -Infinity;
  return (refusal) => {
    metrics.mailTransportRefusals.inc({ transport: refusal.transport });
    if (nowMs() - saidAt < saidEveryMs) return;
    saidAt = nowMs();
    log.error({ alert: 'transportRefusesUs', ...refusal }, 'an operator should look at this: the mail provider refuses our credentials');
  };
}

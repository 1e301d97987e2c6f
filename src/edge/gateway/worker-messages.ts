import type { MetricObjectWithValues, MetricValue } from 'prom-client';

export type WorkerMetrics = MetricObjectWithValues<MetricValue<string>>[];
/** What the process that forks tells those that serve. */
export type ToWorker = { gateway: 'close'; graceMs: number } | { gateway: 'metrics'; asked: number };
export type FromWorker =
  | { gateway: 'bound'; addresses: { http: string; https: string }; instanceId: string; zones: number }
  | { gateway: 'failed'; message: string }
  | { gateway: 'metrics'; asked: number; metrics: WorkerMetrics; zones: number };

/** Messages of ours only: both ends are this program, whatever else shares the channel. */
export function isWorkerMessage<M extends ToWorker | FromWorker>(message: unknown): message is M {
  return typeof message === 'object' && message !== null && 'gateway' in message;
}

/** Resolves when it is on its way, or the parent is gone. */
export function tellParent(message: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, () => resolve());
    else resolve();
  });
}

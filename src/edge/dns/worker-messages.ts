import type { ZoneChangeSet } from '../../dns/ports';
import type { QueryCounts } from './query-counts';

/** What the process that follows the database tells those that answer. Messages arrive in their order. */
export type ToWorker =
  | { dns: 'apply'; changes: ZoneChangeSet }
  /** Every zone has been sent: bind. */
  | { dns: 'loaded' }
  /** Answered when all before it has been applied. */
  | { dns: 'mark'; mark: number }
  | { dns: 'close' };

export type FromWorker =
  | { dns: 'ready' }
  | { dns: 'bound'; addresses: readonly { host: string; port: number }[] }
  | { dns: 'failed'; message: string }
  | { dns: 'marked'; mark: number }
  | { dns: 'counts'; counts: ReturnType<QueryCounts['take']> };

/** Messages of ours only: both ends are this program, whatever else shares the channel. */
export function isDnsMessage<M extends ToWorker | FromWorker>(message: unknown): message is M {
  return typeof message === 'object' && message !== null && 'dns' in message;
}

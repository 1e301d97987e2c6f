import { setMaxListeners } from 'node:events';

/**
 * Runs `work` under a signal that ends with `parent`, and as a TimeoutError after `ms`. Once the work has ended nothing of it is left,
 * where `AbortSignal.any` and `AbortSignal.timeout` would keep a timer and its signals for the whole time.
 */
export async function withinMs<T>(parent: AbortSignal, ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const control = new AbortController();
  const follow = () => control.abort(parent.reason);
  setMaxListeners(0, parent); // many works may share it
  if (parent.aborted) follow();
  parent.addEventListener('abort', follow, { once: true });
  const timer = setTimeout(() => control.abort(new DOMException('The time is up.', 'TimeoutError')), ms);
  try {
    return await work(control.signal);
  } finally {
    clearTimeout(timer);
    parent.removeEventListener('abort', follow);
  }
}

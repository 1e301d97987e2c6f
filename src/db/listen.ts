import pg from 'pg';
import type { Log } from '../core/log';

/** One connection per process that hears NOTIFY for everybody in it. */
export interface Listener {
  /**
   * Calls `heard` with the payload of every notification of the channel, and with null when some may have been missed:
   * after each (re)connection. Returns how to stop. The connection is opened with the first listener.
   */
  listen(channel: string, heard: (payload: string | null) => void): () => void;
  close(): Promise<void>;
}

const retryMinMs = 100;
const retryMaxMs = 5_000;

export function createListener(options: { url: string; process: string; log: Log }): Listener {
  const heardBy = new Map<string, Set<(payload: string | null) => void>>();
  let client: pg.Client | null = null;
  let retryMs = retryMinMs;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  const tell = (channel: string, payload: string | null) => heardBy.get(channel)?.forEach((heard) => heard(payload));

  const connect = async () => {
    const fresh = new pg.Client({ connectionString: options.url, application_name: `holdfast-${options.process}-listen`, keepAlive: true, connectionTimeoutMillis: 5_000 });
    client = fresh;
    fresh.on('notification', ({ channel, payload }) => tell(channel, payload ?? ''));
    fresh.on('error', (error) => options.log.warn({ err: error }, 'the listening database connection broke'));
    fresh.once('end', () => reconnect(fresh));
    try {
      await fresh.connect();
      for (const channel of heardBy.keys()) await fresh.query(`listen ${pg.escapeIdentifier(channel)}`);
      retryMs = retryMinMs;
      for (const channel of heardBy.keys()) tell(channel, null);
    } catch (error) {
      options.log.warn({ err: error }, 'cannot listen to the database yet');
      await fresh.end().catch(() => undefined);
      reconnect(fresh);
    }
  };

  const reconnect = (broken: pg.Client) => {
    if (closed || client !== broken) return;
    client = null;
    timer = setTimeout(() => void connect(), retryMs);
    retryMs = Math.min(retryMaxMs, retryMs * 2);
  };

  return {
    listen(channel, heard) {
      const known = heardBy.get(channel) ?? new Set();
      heardBy.set(channel, known.add(heard));
      if (!client && !timer) void connect();
      else if (known.size === 1) void client?.query(`listen ${pg.escapeIdentifier(channel)}`).then(() => heard(null), () => undefined);
      return () => known.delete(heard);
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      await client?.end().catch(() => undefined);
    },
  };
}

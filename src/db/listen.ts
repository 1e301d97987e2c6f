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

type Options = { url: string; process: string; log: Log };

export function createListener(options: Options): Listener {
  return new DatabaseListener(options);
}

class DatabaseListener implements Listener {
  private readonly heardBy = new Map<string, Set<(payload: string | null) => void>>();
  private client: pg.Client | null = null;
  private timer: NodeJS.Timeout | undefined;
  private retryMs = retryMinMs;
  private closed = false;
  /** The driver takes one statement at a time. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: Options) {}

  listen(channel: string, heard: (payload: string | null) => void): () => void {
    const known = this.heardBy.get(channel) ?? new Set();
    this.heardBy.set(channel, known.add(heard));
    if (!this.client && !this.timer) void this.connect();
    else if (this.client && known.size === 1) void this.hear(this.client, channel).then(() => heard(null), () => undefined);
    return () => known.delete(heard);
  }

  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.timer);
    await this.client?.end().catch(() => undefined);
  }

  private async connect(): Promise<void> {
    const { url, process, log } = this.options;
    const client = new pg.Client({ connectionString: url, application_name: `holdfast-${process}-listen`, keepAlive: true, connectionTimeoutMillis: 5_000 });
    this.client = client;
    client.on('notification', ({ channel, payload }) => this.tell(channel, payload ?? ''));
    client.on('error', (error) => log.warn({ err: error }, 'the listening database connection broke'));
    client.once('end', () => this.reconnect(client));
    try {
      await client.connect();
      for (const channel of this.heardBy.keys()) await this.hear(client, channel);
      this.retryMs = retryMinMs;
      for (const channel of this.heardBy.keys()) this.tell(channel, null);
    } catch (error) {
      log.warn({ err: error }, 'cannot listen to the database yet');
      await client.end().catch(() => undefined);
      this.reconnect(client);
    }
  }

  private hear(client: pg.Client, channel: string): Promise<unknown> {
    const heard = this.last.then(() => client.query(`listen ${pg.escapeIdentifier(channel)}`));
    this.last = heard.catch(() => undefined);
    return heard;
  }

  private tell(channel: string, payload: string | null): void {
    this.heardBy.get(channel)?.forEach((heard) => heard(payload));
  }

  private reconnect(broken: pg.Client): void {
    if (this.closed || this.client !== broken) return;
    this.client = null;
    this.timer = setTimeout(() => void this.connect(), this.retryMs);
    this.retryMs = Math.min(retryMaxMs, this.retryMs * 2);
  }
}

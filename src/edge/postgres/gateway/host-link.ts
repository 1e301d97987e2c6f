import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { JsonLineClient } from '../../../core/json-lines';
import { AppError } from '../../../core/errors';
import type { Log } from '../../../core/log';
import { hostAnswers } from '../../../postgres/schemas/host';

const wakeMs = 15_000;
const retryMs = 100;

type Held = { sessions: number; port: Promise<number> };

/**
 * The gateway's leases on running instances: one per service, from its first session to its last. They live with the
 * connection to the instance host; when that breaks they are taken again, and sessions go on meanwhile.
 */
export class HostLink {
  private readonly held = new Map<string, Held>();
  private readonly client: JsonLineClient;
  private renewing = false;
  private closed = false;

  constructor(runDir: string, private readonly log: Log) {
    this.client = new JsonLineClient(join(runDir, 'gateway.sock'), () => void this.renew());
  }

  /** Port of the service's running server; to be given back with `leave`, also when it fails. Errors: `not_found`; `backend_error` after 15 s. */
  enter(serviceId: string): Promise<number> {
    const held = this.held.get(serviceId) ?? { sessions: 0, port: this.acquire(serviceId) };
    this.held.set(serviceId, held);
    held.sessions += 1;
    return held.port;
  }

  /** The server does not answer at `port`: it may have died. Asks again, once for all who find out about one port at the same time. */
  async again(serviceId: string, port: number): Promise<number> {
    const held = this.held.get(serviceId);
    if (!held) return this.acquire(serviceId);
    const asked = held.port;
    if (await asked.catch(() => port) === port && held.port === asked) held.port = this.acquire(serviceId);
    return held.port;
  }

  leave(serviceId: string): void {
    const held = this.held.get(serviceId);
    if (!held || --held.sessions > 0) return;
    this.held.delete(serviceId);
    this.release(serviceId);
  }

  close(): void {
    this.closed = true;
    this.client.close();
  }

  /** With the connection the lease is gone as well, so a failure needs nothing. */
  private release(serviceId: string): void {
    this.client.call('release', { serviceId }, hostAnswers.release, 5_000).catch(() => undefined);
  }

  /** A host that restarts is waited for; a refusal is final. */
  private async acquire(serviceId: string): Promise<number> {
    const until = performance.now() + wakeMs;
    for (;;) {
      try {
        const { port } = await this.client.call('acquire', { serviceId }, hostAnswers.acquire, Math.max(1, until - performance.now()));
        if (!this.held.has(serviceId)) this.release(serviceId); // the last session left while the lease was under way
        return port;
      } catch (error) {
        if (this.closed || (error instanceof AppError && error.code === 'not_found') || performance.now() + retryMs > until) throw error;
        await delay(retryMs);
      }
    }
  }

  private async renew(): Promise<void> {
    if (this.renewing || this.closed || this.held.size === 0) return;
    this.renewing = true;
    try {
      for (const [serviceId, held] of this.held) {
        const port = this.acquire(serviceId);
        await port.then(() => { held.port = port; }, (error: unknown) => this.log.warn({ err: error, serviceId }, 'a lease on a Postgres instance was lost'));
      }
    } finally {
      this.renewing = false;
    }
  }
}

import type { ClientRequest as OriginRequest } from 'node:http';
import { passedTrailers } from './origin-headers';
import type { ClientRequest } from './responder';

/** `stuck`: the origin has taken nothing for a minute; told again each second, and nothing is lost by it. */
export type BodyFault = 'too_large' | 'too_slow' | 'gone' | 'stuck';

/**
 * The body of one request: its beginning is read for inspection, all of it goes on to the origin. More than `bytesMax` and less
 * than 1 KiB/s after 5 s are faults, told once; bytes are counted as they come.
 */
export class RequestBody {
  bytes = 0;
  private chunks: Buffer[] = [];
  private ended = false;
  private faulted = false;
  private sink: OriginRequest | null = null;
  private enough: { bytes: number; tell: () => void } | null = null;
  private isWaiting = false;
  private waitedMs = 0;
  private restedMs = 0;
  private begun = false;
  private isDiscarding = false;

  constructor(private readonly request: ClientRequest, private readonly bytesMax: number, private readonly onFault: (fault: BodyFault) => void, private readonly watch: SlowBodies) {}

  /** At most `bytes` of the beginning, and whether that is all. Never resolves when a fault is told instead. */
  async prefix(bytes: number): Promise<{ body: Buffer; isComplete: boolean }> {
    await new Promise<void>((tell) => {
      this.enough = { bytes, tell };
      this.begin();
      this.check();
    });
    const body = Buffer.concat(this.chunks);
    return { body: body.subarray(0, bytes), isComplete: this.ended && body.length <= bytes };
  }

  /** What was read and what comes goes to the origin, with its trailers. */
  sendTo(origin: OriginRequest): void {
    this.sink = origin;
    for (const chunk of this.chunks) origin.write(chunk);
    this.chunks = [];
    if (this.ended) return this.finish(origin);
    origin.on('drain', () => this.flow());
    this.begin();
    this.flow();
  }

  /** The rest is read and forgotten, so that the connection can go on. Whether there is a rest. */
  discard(): boolean {
    this.sink = null;
    this.chunks = [];
    this.enough = null;
    this.isDiscarding = true;
    this.watch.remove(this);
    if (this.ended) return false;
    this.begin();
    this.request.resume();
    return true;
  }

  /** Another second has passed. */
  tick(ms: number): void {
    if (!this.isWaiting) {
      this.restedMs += ms;
      if (this.sink && this.restedMs > stuckMs) this.onFault('stuck');
      return;
    }
    this.waitedMs += ms;
    if (this.waitedMs > slow.graceMs && this.bytes * 1_000 < slow.bytesPerSecond * this.waitedMs) this.fault('too_slow');
  }

  private begin(): void {
    if (this.begun) return;
    this.begun = true;
    if (!this.isDiscarding) this.watch.add(this);
    this.isWaiting = true;
    this.request.on('data', (chunk: Buffer) => this.take(chunk));
    this.request.once('end', () => this.end());
    this.request.once('close', () => {
      if (!this.ended) this.fault('gone');
    });
    this.request.once('error', () => this.fault('gone'));
  }

  private take(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.bytes > this.bytesMax && !this.isDiscarding) return this.fault('too_large');
    if (this.faulted || this.isDiscarding) return;
    if (!this.sink) {
      this.chunks.push(chunk);
      this.check();
    } else if (!this.sink.write(chunk)) this.rest();
  }

  private check(): void {
    if (!this.enough || (!this.ended && this.bytes <= this.enough.bytes)) return;
    const { tell } = this.enough;
    this.enough = null;
    if (!this.ended) this.rest();
    tell();
  }

  private rest(): void {
    this.isWaiting = false;
    this.restedMs = 0;
    this.request.pause();
  }

  private flow(): void {
    if (this.ended || this.faulted) return;
    this.isWaiting = true;
    this.request.resume();
  }

  private end(): void {
    this.ended = true;
    this.watch.remove(this);
    if (this.faulted || this.isDiscarding) return;
    this.check();
    if (this.sink) this.finish(this.sink);
  }

  private finish(origin: OriginRequest): void {
    const trailers = passedTrailers(this.request.rawTrailers);
    if (trailers.length > 0) origin.addTrailers(trailers);
    origin.end();
  }

  private fault(fault: BodyFault): void {
    if (this.faulted || this.ended || this.isDiscarding) return;
    this.faulted = true;
    this.watch.remove(this);
    this.onFault(fault);
  }
}

const slow = { graceMs: 5_000, bytesPerSecond: 1_024 };
const stuckMs = 60_000;
const tickMs = 1_000;

/** Looks at every body that is on its way once a second. */
export class SlowBodies {
  private readonly bodies = new Set<RequestBody>();
  private readonly timer = setInterval(() => this.tick(), tickMs).unref();

  add(body: RequestBody): void {
    this.bodies.add(body);
  }

  remove(body: RequestBody): void {
    this.bodies.delete(body);
  }

  close(): void {
    clearInterval(this.timer);
  }

  private tick(): void {
    for (const body of this.bodies) body.tick(tickMs);
  }
}

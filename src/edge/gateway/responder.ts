import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';

export type ClientRequest = IncomingMessage | Http2ServerRequest;
export type ClientResponse = ServerResponse | Http2ServerResponse;

/** The way to answer one request, whatever protocol it came by. Headers are flat lists. */
export interface Responder {
  /** A status has been sent that is not an interim one. */
  readonly isStarted: boolean;
  readonly isClosed: boolean;
  readonly status: number;
  start(status: number, reason: string, headers: readonly string[]): void;
  /** False: wait for `onDrain` before more. */
  write(chunk: Buffer): boolean;
  end(body?: string | Buffer): void;
  /** What was started goes out although nothing of the body is there yet. */
  flush(): void;
  trailers(pairs: readonly [string, string][]): void;
  interim(status: number, reason: string, headers: readonly string[]): void;
  onDrain(resume: () => void): void;
  /** Called once, when all was sent or the client is gone. */
  onClose(closed: () => void): void;
  /** The connection is somebody else's from here on (a tunnel). */
  detach(): void;
  /** The client is told by a broken connection or stream that this is not all. */
  abort(): void;
}

/** `closing`: the connection is to end with this answer; `ends`: it does. */
export function responderOf(response: ClientResponse, closing: () => boolean, ends: () => void): Responder {
  return response instanceof ServerResponse ? new Http1Responder(response, closing, ends) : new Http2Responder(response);
}

class Http1Responder implements Responder {
  constructor(private readonly response: ServerResponse, private readonly closing: () => boolean, private readonly ends: () => void) {
    response.sendDate = false;
  }

  get isStarted(): boolean { return this.response.headersSent; }
  /** Also when the parser has refused what followed, and the connection ends. */
  get isClosed(): boolean { return this.response.destroyed || (this.response.socket?.writableEnded ?? false); }
  get status(): number { return this.response.statusCode; }

  start(status: number, reason: string, headers: readonly string[]): void {
    const isLast = headers.some((text, i) => i % 2 === 0 && text === 'Connection' && headers[i + 1] === 'close');
    if (isLast || this.closing()) this.ends();
    this.response.writeHead(status, reason, !isLast && this.closing() ? [...headers, 'Connection', 'close'] : [...headers]);
  }

  write(chunk: Buffer): boolean { return this.response.write(chunk); }
  end(body?: string | Buffer): void { this.response.end(body); }
  flush(): void { this.response.flushHeaders(); }
  trailers(pairs: readonly [string, string][]): void { if (pairs.length > 0) this.response.addTrailers([...pairs]); }
  onDrain(resume: () => void): void { this.response.on('drain', resume); }
  onClose(closed: () => void): void { this.response.once('close', closed); }
  abort(): void { this.response.destroy(); }
  detach(): void { if (this.response.socket) this.response.detachSocket(this.response.socket); }

  /** Answers of pipelined requests go out in turn; an interim one that is not its turn yet is left out, which HTTP allows. */
  interim(status: number, reason: string, headers: readonly string[]): void {
    const { socket } = this.response;
    if (!socket || this.isStarted || this.response.req.httpVersionMinor === 0) return;
    let text = `HTTP/1.1 ${status} ${reason}\r\n`;
    for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
    socket.write(`${text}\r\n`, 'latin1');
  }
}

const nothing = Buffer.alloc(0);
/** HTTP/2 has frames for these, or no use (RFC 9113 §8.2.2). */
const notInHttp2: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'te', 'http2-settings']);
const aborted = new WeakSet<object>();

/** Whether it was not the client that has reset a stream. */
export function isAbortedByUs(stream: object): boolean {
  return aborted.has(stream);
}

class Http2Responder implements Responder {
  private readonly lasting: Record<string, string> = {};
  private closed = false;

  constructor(private readonly response: Http2ServerResponse) {
    response.sendDate = false;
    response.once('close', () => {
      this.closed = true;
    });
  }

  get isStarted(): boolean { return this.response.headersSent; }
  get isClosed(): boolean { return this.closed; }
  get status(): number { return this.response.statusCode; }

  start(status: number, _reason: string, headers: readonly string[]): void {
    this.response.writeHead(status, grouped(headers));
  }

  write(chunk: Buffer): boolean { return this.response.write(chunk); }
  flush(): void { if (!this.closed) this.response.write(nothing); }

  end(body?: string | Buffer): void {
    if (Object.keys(this.lasting).length > 0) this.response.addTrailers(this.lasting);
    if (body === undefined) this.response.end();
    else this.response.end(body);
  }

  trailers(pairs: readonly [string, string][]): void {
    for (const [name, value] of pairs) this.lasting[name.toLowerCase()] = value;
  }

  onDrain(resume: () => void): void { this.response.on('drain', resume); }
  onClose(closed: () => void): void { this.response.once('close', closed); }

  detach(): void { /* HTTP/2 has no upgrades. */ }

  abort(): void {
    if (this.closed) return;
    aborted.add(this.response.stream);
    this.response.stream.close(2); // INTERNAL_ERROR
  }

  interim(status: number, _reason: string, headers: readonly string[]): void {
    if (!this.isStarted && !this.closed) this.response.stream.additionalHeaders({ ...grouped(headers), ':status': status });
  }
}

function grouped(flat: readonly string[]): Record<string, string | string[]> {
  const out: Record<string, string | string[]> = {};
  for (let i = 0; i < flat.length; i += 2) {
    const name = (flat[i] ?? '').toLowerCase();
    const value = flat[i + 1] ?? '';
    const before = out[name];
    if (notInHttp2.has(name)) continue;
    if (before === undefined) out[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else out[name] = name === 'set-cookie' ? [before, value] : `${before}, ${value}`;
  }
  const cookie = out['set-cookie'];
  if (typeof cookie === 'string') out['set-cookie'] = [cookie];
  return out;
}

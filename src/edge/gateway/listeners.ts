import { createServer as createHttp1, ServerResponse, STATUS_CODES, type IncomingMessage, type Server as Http1Server } from 'node:http';
import { createSecureServer, type Http2SecureServer, type Http2ServerRequest, type Http2ServerResponse, type Http2Session, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { SecureContext, TLSSocket } from 'node:tls';
import { listen } from '../../core/listen';
import { plainAddress, type NetworkCheck } from './client-address';
import type { Arrival, Connection } from './handler';
import type { GatewayMetrics } from './metrics';
import { isAbortedByUs, responderOf, type ClientRequest, type ClientResponse } from './responder';
import { isWebSocket, withoutUpgrade } from './upgrade';

const headMax = 16_384;
const headMs = 10_000;
const keepAliveMs = 75_000;
const idleSessionMs = 300_000;
const checkMs = 1_000;
/** How long a client may take to read the last answer of its connection. */
const lastWordMs = 5_000;
const streamsMax = 100;
const resets = { max: 100, withinMs: 10_000 };
const connectionsPerAddress = 256;

export type ListenerOptions = {
  http: string; https: string;
  /** Of who gives no name, or one we have no certificate for. */
  fallback: { certificate: string; key: string };
  contextFor: (serverName: string) => SecureContext | null;
  serve: (arrival: Arrival) => void;
  isTrusted: NetworkCheck; metrics: GatewayMetrics;
  /** How many processes share the connections of an address. */
  share: number;
};

/** What clients connect to: HTTP/1.1 in the clear, HTTP/2 and HTTP/1.1 over TLS. */
export class Listeners {
  private readonly plain: Http1Server;
  private readonly secure: Http2SecureServer;
  private readonly sockets = new Set<Socket>();
  private readonly sessions = new Set<ServerHttp2Session>();
  private readonly perAddress = new Map<string, number>();
  private readonly known = new WeakMap<object, Connection>();
  /** Answers on their way, by connection: a refusal by the parser must not go in between. */
  private readonly open = new WeakMap<object, Set<ClientResponse>>();
  /** Connections that end with an answer that is out: what was sent after its request is nobody's. */
  private readonly ending = new WeakSet<object>();
  private openCount = 0;
  private draining = false;

  constructor(private readonly options: ListenerOptions) {
    const parsing = { maxHeaderSize: headMax, connectionsCheckingInterval: checkMs, keepAliveTimeout: keepAliveMs, requestTimeout: 0, headersTimeout: headMs, noDelay: true };
    this.plain = createHttp1(parsing);
    this.secure = createSecureServer({
      ...parsing, allowHTTP1: true, cert: options.fallback.certificate, key: options.fallback.key, minVersion: 'TLSv1.2', handshakeTimeout: headMs,
      SNICallback: (name, done) => done(null, options.contextFor(name) ?? undefined), settings: { maxConcurrentStreams: streamsMax, enablePush: false, maxHeaderListSize: headMax },
    });
    // Node has these for both, its types for one; 0: all headers are read, and counted by us.
    for (const server of [this.plain, this.secure]) Object.assign(server, { headersTimeout: headMs, requestTimeout: 0, keepAliveTimeout: keepAliveMs, maxHeadersCount: 0, connectionsCheckingInterval: checkMs });
    this.attach(this.plain);
    this.attach(this.secure);
    this.secure.on('session', (session) => this.watch(session));
  }

  /** Resolves with where it listens. Errors: an address is taken or not ours. */
  async start(): Promise<{ http: string; https: string }> {
    return { http: await listen(this.plain, this.options.http), https: await listen(this.secure, this.options.https) };
  }

  /** New connections are refused; what is on its way has `graceMs`, then it is cut. */
  async drain(graceMs: number): Promise<void> {
    this.draining = true;
    const closed = [this.plain, this.secure].map((server) => new Promise((resolve) => server.close(resolve)));
    this.plain.closeIdleConnections();
    for (const session of this.sessions) session.close();
    const end = performance.now() + graceMs;
    while (this.openCount > 0 && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 20));
    for (const session of this.sessions) session.destroy();
    for (const socket of this.sockets) socket.destroy();
    await Promise.all(closed);
  }

  private attach(server: Http1Server | Http2SecureServer): void {
    const events: NodeJS.EventEmitter = server;
    events.on('connection', (socket: Socket) => this.admit(socket));
    events.on('request', (request: ClientRequest, response: ClientResponse) => this.arrived(request, response, false));
    events.on('checkContinue', (request: ClientRequest, response: ClientResponse) => this.arrived(request, response, true));
    events.on('checkExpectation', (request: ClientRequest, response: ClientResponse) => this.arrived(request, response, false));
    events.on('connect', (request: ClientRequest, other: Socket | Http2ServerResponse) => {
      if ('writeHead' in other) this.arrived(request, other, false);
      else this.inTurn(other, () => this.alone(request, other, null));
    });
    events.on('upgrade', (request: IncomingMessage, socket: Socket, first: Buffer) => this.inTurn(socket, () => this.upgrade(server, { request, socket, first })));
    events.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => this.refuse(error.code ?? '', socket));
    if (server === this.secure) events.on('tlsClientError', (_error: Error, socket: Socket) => {
      this.options.metrics.refused.inc({ reason: 'tls' });
      socket.destroy(); // nothing can be said on it: it would stay
    });
  }

  private admit(socket: Socket): void {
    if (this.sockets.has(socket)) return; // parsed anew
    const address = plainAddress(socket.remoteAddress ?? '');
    const count = (this.perAddress.get(address) ?? 0) + 1;
    if (count > Math.ceil(connectionsPerAddress / this.options.share) && !this.options.isTrusted(address)) {
      this.options.metrics.refused.inc({ reason: 'connections' });
      return void socket.destroy();
    }
    this.perAddress.set(address, count);
    this.sockets.add(socket);
    this.options.metrics.connections.inc();
    socket.once('close', () => {
      this.sockets.delete(socket);
      this.options.metrics.connections.dec();
      const left = (this.perAddress.get(address) ?? 1) - 1;
      if (left > 0) this.perAddress.set(address, left);
      else this.perAddress.delete(address);
    });
  }

  /** Streams that clients open only to reset them cost us and not them (CVE-2023-44487). */
  private watch(session: ServerHttp2Session): void {
    this.sessions.add(session);
    session.once('close', () => this.sessions.delete(session));
    session.setTimeout(idleSessionMs, () => session.close());
    session.on('error', () => session.destroy());
    const idle = setTimeout(() => session.destroy(), headMs);
    session.once('stream', () => clearTimeout(idle)).once('close', () => clearTimeout(idle));
    const times: number[] = [];
    session.on('stream', (stream) => stream.once('close', () => {
      if (stream.rstCode === 0 || isAbortedByUs(stream)) return;
      const now = performance.now();
      if (times.push(now) <= resets.max || now - (times.shift() ?? 0) > resets.withinMs) return;
      this.options.metrics.refused.inc({ reason: 'resets' });
      session.destroy();
    }));
  }

  private arrived(request: ClientRequest, response: ClientResponse, expects: boolean): void {
    const carrier = carrierOf(request);
    if (!carrier || this.ending.has(carrier)) return;
    const connection = this.connectionOf(carrier, request);
    if (connection.peer === '') return void carrier.destroy(); // reset meanwhile: without an address nobody is judged
    this.begin(carrier, response);
    this.options.serve({ request, responder: responderOf(response, () => this.draining, () => this.ending.add(carrier)), connection, expects, upgrade: null });
  }

  /**
   * Only WebSocket goes on as something else. Any other upgrade is left out, which HTTP allows (RFC 9110 §7.8): Node has stopped
   * parsing there, so the request is parsed once more without it.
   */
  private upgrade(server: NodeJS.EventEmitter, { request, socket, first }: { request: IncomingMessage; socket: Socket; first: Buffer }): void {
    if (isWebSocket(request)) return this.alone(request, socket, { socket, first });
    socket.off('error', drop);
    socket.unshift(Buffer.concat([withoutUpgrade(request), first]));
    server.emit(server === this.plain ? 'connection' : 'secureConnection', socket);
  }

  /** Node hands a connection over although earlier requests on it have no answer yet. */
  private inTurn(socket: Socket, go: () => void): void {
    socket.on('error', drop);
    if (this.ending.has(socket)) return;
    const last = [...this.open.get(socket) ?? []].at(-1);
    if (!last) return go();
    last.once('close', () => (socket.writable ? go() : socket.destroy()));
  }

  /** The last request of a connection that Node has let go of. */
  private alone(request: ClientRequest, socket: Socket, upgrade: Arrival['upgrade']): void {
    if (isHttp2(request)) return;
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => socket.setTimeout(lastWordMs, () => socket.destroy()).resume().end());
    this.begin(socket, response);
    this.options.serve({ request, responder: responderOf(response, () => true, () => undefined), connection: this.connectionOf(socket, request), expects: false, upgrade });
  }

  private begin(carrier: object, response: ClientResponse): void {
    const open = this.open.get(carrier) ?? this.opened(carrier, response);
    open.add(response);
    this.openCount += 1;
    response.once('close', () => {
      open.delete(response);
      this.openCount -= 1;
    });
  }

  private opened(carrier: object, response: ClientResponse): Set<ClientResponse> {
    const open = new Set<ClientResponse>();
    this.open.set(carrier, open);
    if (response instanceof ServerResponse) response.req.socket.once('close', () => setImmediate(closeAll, open));
    return open;
  }

  /** What Node's parser does not take (contract gateway.md §4.3, hygiene). */
  private refuse(code: string, socket: Socket): void {
    this.options.metrics.refused.inc({ reason: code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'head_time' : 'parser' });
    const open = [...this.open.get(socket) ?? []];
    const isInTurn = open.length === 0 || (open.length === 1 && open[0]?.headersSent === false);
    if (!socket.writable || code === 'ECONNRESET' || !isInTurn) return void socket.destroy();
    const status = code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
    const body = `${JSON.stringify({ ok: false, message: status === 408 ? 'The request did not arrive in time.' : 'The request could not be understood.', code: status === 408 ? 'request_timeout' : 'bad_request', eventId: null })}\n`;
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
  }

  private connectionOf(carrier: object, request: ClientRequest): Connection {
    const kept = this.known.get(carrier);
    if (kept) return kept;
    const { socket } = request;
    const tls = 'getProtocol' in socket ? socket : null;
    const serverName = tls && 'servername' in tls && typeof tls.servername === 'string' && tls.servername !== '' ? tls.servername.toLowerCase() : null;
    const connection: Connection = { peer: plainAddress(socket.remoteAddress ?? ''), isTls: tls !== null, tlsVersion: tls && protocolOf(tls), serverName };
    this.known.set(carrier, connection);
    return connection;
  }
}

/** Node closes the answer whose turn it is; those that waited for theirs, or became a tunnel, are as much at their end. */
function closeAll(responses: Iterable<ClientResponse>): void {
  for (const response of responses) response.destroy().emit('close');
}

/** One function for all, so that a connection has it once. */
function drop(this: Socket): void {
  this.destroy();
}

function protocolOf(tls: { getProtocol: TLSSocket['getProtocol'] }): '1.2' | '1.3' {
  return tls.getProtocol() === 'TLSv1.2' ? '1.2' : '1.3';
}

/** What requests of one connection have in common; null: it is gone. */
function carrierOf(request: ClientRequest): Http2Session | Socket | null {
  return isHttp2(request) ? request.stream.session ?? null : request.socket;
}

function isHttp2(request: ClientRequest): request is Http2ServerRequest {
  return 'stream' in request;
}

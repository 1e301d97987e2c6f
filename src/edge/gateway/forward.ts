import { request as requestOrigin, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Visit } from './visit';
import type { GatewayMetrics } from './metrics';
import type { OriginAccess } from './origin-access';
import type { Dial, OriginAgent } from './origin-agent';
import { clientHeaders, originHeaders, passedTrailers, serverNameOf } from './origin-headers';
import type { Picked, Target } from './origin-pool';

const firstByteMs = 60_000;
const answerHeadMax = 65_536;

export type ForwardOptions = {
  readonly agent: OriginAgent; readonly access: OriginAccess; readonly loopToken: string; readonly metrics: GatewayMetrics;
  /** Says that the origin was not reached, or did not answer. */
  readonly failed: (visit: Visit, status: 502 | 504) => void;
  /** The origin agrees to speak another protocol from here on. */
  readonly tunnel: (visit: Visit, answer: IncomingMessage, origin: Duplex, head: Buffer) => void;
  /** Looks at an answer before it goes on, when the policy asks for that; else null. */
  readonly inspect: (visit: Visit, answer: IncomingMessage) => Promise<readonly Buffer[] | null> | null;
};

/** Stage 13: the request goes to an origin and its answer to the client, both as they come. */
export function forward(visit: Visit, options: ForwardOptions): void {
  new Forwarding(visit, options).begin(null);
}

class Forwarding {
  private origin: ClientRequest | null = null;
  private late: NodeJS.Timeout | undefined;
  private isLate = false;
  private over = false;

  constructor(private readonly visit: Visit, private readonly options: ForwardOptions) {
    visit.responder.onClose(() => {
      this.over = true;
      clearTimeout(this.late);
      if (!visit.tunnelled) this.origin?.destroy();
    });
  }

  /** `tried`: the address that has just failed. */
  begin(tried: Target | null): void {
    const picked = this.visit.host.pool.pick(this.options.access, tried, this.visit.facts.receivedAt);
    if (picked instanceof Promise) picked.then((one) => this.take(one, tried), () => this.fail(502));
    else this.take(picked, tried);
  }

  private take(picked: Picked, tried: Target | null): void {
    if (this.over) return;
    if ('fault' in picked) {
      this.options.metrics.originFailures.inc({ reason: picked.fault });
      if (picked.fault === 'refused') this.refused();
      return this.fail(502);
    }
    try {
      this.send(picked.target, tried === null);
    } catch {
      this.fail(502); // what Node refuses to write: a header value that HTTP/2 allowed
    }
  }

  private send(target: Target, mayRetry: boolean): void {
    const { head, facts, body, upgrades, expects, request } = this.visit;
    const { hostHeader: own, path: prefix } = target.record;
    const hostHeader = own ?? (head.hostHeader === '' ? facts.host : head.hostHeader);
    const path = `${prefix === null || head.rawPath === '*' ? '' : prefix.replace(/\/$/, '')}${head.rawPath}${head.rawQuery === '' && !request.url?.endsWith('?') ? '' : `?${head.rawQuery}`}`;
    const options: RequestOptions & { dial: Dial } = {
      agent: this.options.agent, method: head.method, path, setHost: false, maxHeaderSize: answerHeadMax, dial: { target, serverName: target.record.protocol === 'https' ? serverNameOf(hostHeader) : '' },
      headers: originHeaders({ facts, head, rawHeaders: request.rawHeaders, loopToken: this.options.loopToken, hostHeader, hasBody: body !== null, upgrades, expects }),
    };
    const origin = requestOrigin(options);
    this.origin = origin;
    origin.once('error', (error: NodeJS.ErrnoException) => this.broken(error, target, mayRetry));
    origin.once('response', (answer) => this.answered(answer, target));
    origin.on('information', ({ statusCode, statusMessage, rawHeaders }) => {
      if (statusCode !== 100 || expects) this.visit.responder.interim(statusCode, statusMessage, rawHeaders);
    });
    if (upgrades) origin.once('upgrade', (answer, socket, first) => this.upgraded(answer, socket, first));
    if (body) {
      origin.once('finish', () => this.await());
      body.sendTo(origin);
    } else {
      this.await();
      origin.end();
    }
  }

  /** The whole request is out: the answer begins within a minute. */
  private await(): void {
    if (this.over || this.visit.responder.isStarted) return;
    clearTimeout(this.late);
    this.late = setTimeout(() => {
      this.isLate = true;
      this.origin?.destroy();
    }, firstByteMs);
  }

  private answered(answer: IncomingMessage, target: Target): void {
    clearTimeout(this.late);
    const { visit } = this;
    const status = answer.statusCode ?? 502;
    visit.originStatus = status;
    this.options.access.resting.reached(target);
    this.found(target, null);
    if (visit.judge.policy.mode !== 'off') visit.judge.answered(visit.facts, status);
    const inspected = this.options.inspect(visit, answer);
    if (!inspected) return this.relay(answer, []);
    answer.once('error', () => visit.responder.abort());
    inspected.then((first) => {
      if (first) this.relay(answer, first);
      else answer.destroy();
    }, () => visit.responder.abort());
  }

  /** `first`: what has been read of the body. */
  private relay(answer: IncomingMessage, first: readonly Buffer[]): void {
    const { visit: { responder, facts, hsts, head } } = this;
    if (this.over || responder.isClosed) return void answer.destroy();
    try {
      responder.start(answer.statusCode ?? 502, answer.statusMessage ?? '', clientHeaders(answer.rawHeaders, answer.httpVersion, facts.requestId, hsts));
    } catch {
      answer.destroy();
      return this.fail(502);
    }
    let isEmpty = first.length === 0;
    for (const chunk of first) responder.write(chunk);
    const end = () => {
      responder.trailers(passedTrailers(answer.rawTrailers));
      responder.end();
    };
    if (answer.readableEnded) return end();
    answer.on('data', (chunk: Buffer) => {
      isEmpty = false;
      if (!responder.write(chunk)) answer.pause();
    });
    responder.onDrain(() => answer.resume());
    answer.once('end', end);
    answer.once('close', () => {
      if (!answer.complete) responder.abort();
    });
    // Where the body waits (events, long answers) the head does not.
    if (head.method !== 'HEAD') setImmediate(() => isEmpty && !answer.readableEnded && !responder.isClosed && responder.flush());
  }

  private upgraded(answer: IncomingMessage, socket: Duplex, first: Buffer): void {
    clearTimeout(this.late);
    this.visit.originStatus = 101;
    if (this.over) return void socket.destroy();
    this.options.tunnel(this.visit, answer, socket, first);
  }

  private broken(error: NodeJS.ErrnoException, target: Target, mayRetry: boolean): void {
    clearTimeout(this.late);
    const { visit, options: { agent, access, metrics } } = this;
    const { origin } = this;
    if (this.over || !origin) return;
    if (visit.responder.isStarted) return visit.responder.abort();
    const wasReached = agent.isEstablished(origin);
    if (!wasReached) access.resting.failed(target);
    if (!wasReached || this.isLate) this.found(target, this.isLate ? 'no answer in time' : error.code ?? error.message);
    metrics.originFailures.inc({ reason: this.isLate ? 'first_byte' : wasReached ? 'broken' : 'connect' });
    const { method } = visit.head;
    const isSafe = visit.body === null && (method === 'GET' || method === 'HEAD') && !this.isLate;
    if (mayRetry && isSafe && (origin.reusedSocket || visit.host.pool.hasOther(target))) return this.begin(target);
    this.fail(this.isLate || error.code === 'ETIMEDOUT' ? 504 : 502);
  }

  /** None of the addresses may be dialled; names have others tomorrow. */
  private refused(): void {
    for (const { kind, value } of this.visit.host.route.origins) if (kind !== 'CNAME') this.found({ address: value }, 'address_refused');
  }

  private found({ address }: Pick<Target, 'address'>, error: string | null): void {
    const { facts: { zoneId, receivedAt }, host: { route: { hostname } } } = this.visit;
    this.options.access.health.found({ zoneId, hostname, address }, error, receivedAt);
  }

  private fail(status: 502 | 504): void {
    if (this.over) return;
    if (this.visit.responder.isStarted) this.visit.responder.abort();
    else this.options.failed(this.visit, status);
  }
}

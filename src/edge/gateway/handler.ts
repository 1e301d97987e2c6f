import { STATUS_CODES as reasons, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Log } from '../../core/log';
import type { Decision, EventSink, RequestFacts } from '../../gateway/ports';
import { canonicalPath } from './canonical-path';
import { clientAddress, type NetworkCheck } from './client-address';
import { Visit, refusal } from './visit';
import { forward, type ForwardOptions } from './forward';
import { readHead, type Head } from './hygiene';
import type { Page } from './judge';
import type { GatewayMetrics } from './metrics';
import { ownAnswer } from './own-answers';
import { RequestBody, type BodyFault, type SlowBodies } from './request-body';
import { newRequestId } from './request-ids';
import type { ClientRequest, Responder } from './responder';
import { inspectAnswer } from './answer-inspection';
import { transportAnswer, hstsOf } from './transport';
import { openTunnel } from './tunnel';
import type { ServedHost, ZoneTable } from './zone-table';

/** What is known of a client's connection. */
export type Connection = { peer: string; isTls: boolean; tlsVersion: '1.2' | '1.3' | null; serverName: string | null };
export type Arrival = {
  request: ClientRequest; responder: Responder; connection: Connection;
  /** The client waits for 100 before it sends its body. */
  expects: boolean;
  /** It wants another protocol on this connection. */
  upgrade: { socket: Socket; first: Buffer } | null;
};

export type HandlerOptions = Pick<ForwardOptions, 'agent' | 'access' | 'loopToken' | 'metrics'> & {
  zones: ZoneTable; sink: EventSink; isTrusted: NetworkCheck; bodyBytesMax: number; slowBodies: SlowBodies; metrics: GatewayMetrics;
  /** Where a client is, and whether it is a known good bot. */
  describe: (ip: string) => Pick<RequestFacts, 'country' | 'asn' | 'isVerifiedBot'>;
  /** The key authorization of an ACME token we placed; null: none of ours. */
  acmeToken: (token: string) => Promise<string | null>;
  log: Log;
};

const acmePrefix = '/.well-known/acme-challenge/';
const challengePath = '/.well-known/holdfast/challenge';
/** Longest form of a solved challenge. */
const challengeBytesMax = 16_384;
/** A client that has been refused may go on sending for this long, so that it can read why. */
const lingerMs = 5_000;

/** The stages of a request in their order (contract gateway.md §4.3). Whatever takes no waiting is done in one turn. */
export class Handler {
  private readonly forwarding: ForwardOptions;

  constructor(private readonly options: HandlerOptions) {
    this.forwarding = {
      ...options,
      failed: (visit, status) => this.answer(visit, ownPage(visit, status, status === 504 ? 'origin_timeout' : 'origin_unreachable')),
      tunnel: (visit, answer, origin, first) => this.tunnel(visit, { answer, origin, first }),
      inspect: (visit, answer) => this.inspect(visit, answer),
    };
  }

  private readonly upgrades = new WeakMap<Visit, { socket: Socket; first: Buffer }>();

  /** Whatever goes wrong is one request's trouble, not the process's. */
  serve(arrival: Arrival): void {
    try {
      this.admit(arrival);
    } catch (error) {
      this.options.log.error({ err: error }, 'a request could not be served');
      arrival.responder.abort();
    }
  }

  /** Stages 1 and 2. */
  private admit(arrival: Arrival): void {
    const { request, responder, connection } = arrival;
    const { head, fault } = readHead({ method: request.method ?? '', url: request.url ?? '', version: versionOf(request), rawHeaders: request.rawHeaders });
    const host = head.authority ? this.options.zones.find(head.authority.host) : null;
    if (!host) return this.answerStranger(responder, head, fault);
    const visit = this.open(arrival, head, host);
    if (fault) return this.refuse(visit, refusal('protocol', fault, 400, 'bad_request'));
    const other = connection.serverName === null ? null : this.options.zones.find(connection.serverName);
    if (other && other.zone.facts.zoneId !== host.zone.facts.zoneId) return this.refuse(visit, refusal('protocol', 'misdirected', 421, 'misdirected'));
    if (head.cdnLoop !== '' && head.cdnLoop.split(',').some((entry) => entry.split(';')[0]?.trim().toLowerCase() === this.options.loopToken)) {
      return this.refuse(visit, refusal('protocol', 'loop', 508, 'loop_detected'));
    }
    if (visit.upgrades && visit.body) return this.refuse(visit, refusal('protocol', 'upgrade_body', 400, 'bad_request'));
    if (head.contentLength !== null && head.contentLength > this.options.bodyBytesMax) return this.refuse(visit, refusal('protocol', 'body_size', 413, 'payload_too_large'));
    this.wellKnown(visit);
  }

  /** Without a zone there is nobody to tell: only metrics know. */
  private answerStranger(responder: Responder, head: Head, fault: string | null): void {
    this.options.metrics.refused.inc({ reason: fault ?? 'unknown_host' });
    const page = ownAnswer({ status: fault ? 400 : 404, code: fault ? 'bad_request' : 'not_found', eventId: null, requestId: null, accept: head.accept });
    send(responder, page, head.method, fault || head.isChunked || head.contentLength !== null ? [['Connection', 'close']] : []);
  }

  private open({ request, responder, connection, expects, upgrade }: Arrival, head: Head, host: ServedHost): Visit {
    const startedAt = performance.now();
    const facts = this.factsOf(request, connection, head, host);
    const isHttp2 = facts.httpVersion === '2';
    const hasBody = head.isChunked || (head.contentLength ?? 0) > 0 || (isHttp2 && head.contentLength === null && !endsAtHead(request));
    const { judge } = host.zone;
    const upgrades = upgrade !== null && head.upgrade.toLowerCase() === 'websocket';
    const visit = new Visit({ request, responder, head, facts, host, judge, hsts: facts.scheme === 'https' ? hstsOf(judge.policy.transport) : null, expects, upgrades, startedAt });
    if (hasBody) visit.body = new RequestBody(request, this.options.bodyBytesMax, (fault) => this.bodyFault(visit, fault), this.options.slowBodies);
    if (upgrade) this.upgrades.set(visit, upgrade);
    responder.onClose(() => {
      if (!visit.tunnelled) this.record(visit);
    });
    return visit;
  }

  private factsOf(request: ClientRequest, { peer, isTls, tlsVersion }: Connection, head: Head, host: ServedHost): RequestFacts {
    const receivedAt = Date.now();
    const version = versionOf(request);
    const clientIp = clientAddress(peer, head.forwardedFor, this.options.isTrusted);
    const forwarded = head.forwardedProto !== '' && this.options.isTrusted(peer) ? head.forwardedProto.toLowerCase() : '';
    return {
      zoneId: host.zone.facts.zoneId, requestId: newRequestId(receivedAt), receivedAt, clientIp, ...this.options.describe(clientIp), method: head.method,
      scheme: forwarded === 'https' || (isTls && forwarded !== 'http') ? 'https' : 'http', host: head.authority?.host ?? '', rawPath: head.rawPath, path: canonicalPath(head.rawPath),
      rawQuery: head.rawQuery, httpVersion: version === '2' || version === '1.0' ? version : '1.1', tlsVersion, headers: head.headers, contentLength: head.contentLength, body: null, bodyComplete: true,
    };
  }

  /** Stage 3: what we answer ourselves, before any redirect to TLS. */
  private wellKnown(visit: Visit): void {
    const { facts, head } = visit;
    if (!facts.rawPath.startsWith('/.well-known/')) return this.transport(visit);
    if (facts.rawPath === challengePath && visit.judge.policy.mode !== 'off') {
      if (head.method === 'POST') return this.challenge(visit);
    } else if (facts.rawPath.startsWith(acmePrefix) && head.method === 'GET') {
      this.options.acmeToken(facts.rawPath.slice(acmePrefix.length)).then((authorization) => {
        if (authorization === null) this.transport(visit);
        else this.answer(visit, { status: 200, headers: [['Content-Type', 'application/octet-stream']], body: authorization });
      }, () => this.transport(visit));
      return;
    }
    this.transport(visit);
  }

  private challenge(visit: Visit): void {
    const solved = (facts: RequestFacts) => {
      const { page, decision } = visit.judge.answerChallenge(facts);
      if (!page) return this.refuse(visit, decision);
      visit.decision = decision;
      visit.eventId = this.options.sink.reserve(visit.facts, decision);
      this.answer(visit, page);
    };
    if (visit.body) void this.readBody(visit, challengeBytesMax).then(solved);
    else solved(visit.facts);
  }

  /** Stages 4 and 5. */
  private transport(visit: Visit): void {
    const { facts, judge: { policy } } = visit;
    const answer = transportAnswer(policy.transport, facts, visit.head);
    if (answer === 'tls_version') return this.refuse(visit, refusal('transport', 'tls_version', 403, 'tls_version'));
    if (answer) return this.answer(visit, answer);
    if (policy.mode === 'off') this.forward(visit);
    else this.judge(visit);
  }

  /** The beginning of the body, when there is one. Our 100 takes the place of the origin's. Never resolves once the client is gone. */
  private async readBody(visit: Visit, bytes: number): Promise<RequestFacts> {
    if (!visit.body) return visit.facts;
    if (visit.expects) visit.responder.interim(100, 'Continue', []);
    visit.expects = false;
    const { body, isComplete } = await visit.body.prefix(bytes);
    visit.whole = { ...visit.facts, body, bodyComplete: isComplete };
    return visit.whole;
  }

  /** Stages 6 to 12. */
  private judge(visit: Visit): void {
    const { maxBodyBytes } = visit.judge.policy.managedRules;
    const decision = visit.body ? visit.judge.judge(visit.facts, () => this.readBody(visit, maxBodyBytes)) : visit.judge.judge(visit.facts);
    if (!(decision instanceof Promise)) return this.decided(visit, decision);
    decision.then((later) => this.decided(visit, later), () => this.decided(visit, refusal('protocol', 'unjudged', 503, 'engine_error')));
  }

  private decided(visit: Visit, decision: Decision): void {
    if (decision.refusal) return this.refuse(visit, decision);
    visit.decision = decision;
    if (decision.outcome !== 'clean') visit.eventId = this.options.sink.reserve(visit.facts, decision);
    this.forward(visit);
  }

  /** What came together with the head has been parsed before anything goes out: a body that is malformed from the start reaches nobody. */
  private forward(visit: Visit): void {
    const go = () => visit.responder.isClosed || forward(visit, this.forwarding);
    if (visit.body) setImmediate(go);
    else go();
  }

  /** Stage 14. */
  private inspect(visit: Visit, answer: IncomingMessage): Promise<readonly Buffer[] | null> | null {
    return inspectAnswer(visit, answer, (decision) => {
      if (decision.refusal) return this.refuse(visit, decision);
      if (decision.outcome !== visit.decision.outcome) visit.eventId = this.options.sink.reserve(visit.facts, decision);
      visit.decision = decision;
    });
  }

  private refuse(visit: Visit, decision: Decision): void {
    visit.decision = decision;
    visit.eventId = this.options.sink.reserve(visit.facts, decision);
    const { status, code, page } = decision.refusal ?? { status: 403, code: 'request_blocked', page: 'refused' };
    this.answer(visit, page === 'challenge' ? visit.judge.challengePage(visit.facts, visit.eventId) : ownPage(visit, status, code));
  }

  /** An answer of ours. The body that is still on its way is read and forgotten. */
  private answer(visit: Visit, page: Page): void {
    const { responder, facts, hsts, eventId, body, head, decision } = visit;
    if (responder.isStarted || responder.isClosed) return;
    const headers: [string, string][] = [['X-Request-Id', facts.requestId]];
    if (eventId !== null) headers.push(['X-Gateway-Event', eventId]);
    if (hsts !== null) headers.push(['Strict-Transport-Security', hsts]);
    const retry = decision.refusal?.retryAfterSeconds ?? null;
    if (retry !== null) headers.push(['Retry-After', String(retry)]);
    // What could not be understood may be followed by what is meant to be misunderstood.
    if (visit.upgrades || decision.refusal?.code === 'bad_request') headers.push(['Connection', 'close']);
    send(responder, page, head.method, headers);
    if (body?.discard()) {
      const late = setTimeout(() => {
        responder.abort();
        visit.request.destroy();
      }, lingerMs);
      visit.request.once('end', () => clearTimeout(late)).once('close', () => clearTimeout(late));
    }
  }

  private bodyFault(visit: Visit, fault: BodyFault): void {
    const { responder } = visit;
    if (fault === 'stuck') return responder.isStarted ? undefined : this.answer(visit, ownPage(visit, 504, 'origin_timeout'));
    if (fault === 'gone' || responder.isStarted) return responder.abort();
    if (fault === 'too_large') return this.refuse(visit, refusal('protocol', 'body_size', 413, 'payload_too_large'));
    this.refuse(visit, refusal('protocol', 'slow_body', 408, 'request_timeout'));
  }

  private tunnel(visit: Visit, { answer, origin, first }: { answer: IncomingMessage; origin: Duplex; first: Buffer }): void {
    const upgrade = this.upgrades.get(visit);
    if (!upgrade) return void origin.destroy();
    visit.tunnelled = true;
    visit.responder.detach();
    openTunnel(upgrade.socket, upgrade.first, { answer, origin, originFirst: first, requestId: visit.facts.requestId });
    upgrade.socket.once('close', () => this.record(visit));
  }

  private record(visit: Visit): void {
    this.options.metrics.requests.inc({ outcome: visit.decision.outcome });
    this.options.sink.record(visit.finished(), visit.eventId);
  }
}

function ownPage({ eventId, facts, head }: Visit, status: number, code: string): Page {
  return ownAnswer({ status, code, eventId, requestId: facts.requestId, accept: head.accept });
}

function send(responder: Responder, { status, headers, body }: Page, method: string, more: readonly (readonly [string, string])[]): void {
  const flat = [...headers, ...more].flatMap(([name, value]) => [name, value]);
  responder.start(status, reasons[status] ?? '', [...flat, 'Content-Length', String(Buffer.byteLength(body)), 'Date', new Date().toUTCString()]);
  responder.end(method === 'HEAD' ? undefined : body);
}

/** Node reads `HTTP/2.0` in the clear as well: that is no HTTP/2. */
function versionOf(request: ClientRequest): string {
  return 'stream' in request ? '2' : request.httpVersion;
}

function endsAtHead(request: ClientRequest): boolean {
  return 'stream' in request && request.stream.endAfterHeaders;
}

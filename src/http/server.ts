import { createServer, IncomingMessage, ServerResponse, type Server } from 'node:http';
import { Socket } from 'node:net';
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import helmet from 'helmet';
import { AppError, invalid } from '../core/errors';
import { newId } from '../core/ids';
import type { Log } from '../core/log';
import { runOperation, type Answer, type Trace } from './call';
import { clientAddress } from './client-address';
import { errorBody, toAppError } from './errors';
import type { FrameDeps } from './frame';
import type { Operation, RequestFacts } from './operation';
import { RateLimited, rateLimitHeaders } from './rate-limit';

const bodyMaxBytesDefault = 256 * 1024;

/** The Express application: every operation at its address, its `/v1` address and its aliases. `extra` are the pages outside the envelope. */
export function createApp<D extends FrameDeps>(deps: D, operations: readonly Operation<D>[], extra: (app: express.Express) => void = () => undefined): express.Express {
  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.set('query parser', 'simple').set('case sensitive routing', true);
  app.use(beginRequest(deps), setSecurityHeaders(), requireWellFormed);
  extra(app);
  const allowed = new Map<string, Set<string>>();
  for (const operation of operations) {
    for (const path of addresses(operation)) {
      app[operation.method](path, ...handlersOf(deps, operation));
      allowed.set(path, (allowed.get(path) ?? new Set()).add(operation.method.toUpperCase()));
    }
  }
  for (const [path, methods] of allowed) app.all(path, (_, response) => refuseMethod(response, [...methods]));
  app.use(() => {
    throw new AppError('route_not_found', 'There is no such route. The documentation is at /docs.');
  });
  app.use(failed(deps.log));
  return app;
}

/**
 * Headers must be complete within 10 s, the whole request within 30 s; answers may take longer (long polls). What Node would
 * refuse by itself, with statuses and bodies of its own, is answered in the envelope too.
 */
export function createHttpServer(app: express.Express): Server {
  const server = createServer({
    headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 65_000, connectionsCheckingInterval: 2_000, requireHostHeader: false,
  }, app);
  server.on('checkExpectation', app);
  server.on('clientError', (_, socket) => {
    if (!socket.writable) return;
    const requestId = newId('req');
    const body = JSON.stringify(errorBody(new AppError('validation_error', 'This is no complete HTTP request.', { issues: [] }), requestId));
    socket.end(['HTTP/1.1 400 Bad Request', 'Connection: close', `X-Request-Id: ${requestId}`, 'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`, '', body].join('\r\n'));
  });
  return server;
}

/** Where an operation answers: below /v1, without a version, and the same two for each alias. */
export function addresses<D>(operation: Pick<Operation<D>, 'path' | 'aliases'>): string[] {
  return [operation.path, ...(operation.aliases ?? [])].flatMap((path) => [`/v1${path}`, path]);
}

const securityHeaders = {
  contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: [`'none'`], frameAncestors: [`'none'`], baseUri: [`'none'`], formAction: [`'none'`] } },
  referrerPolicy: { policy: 'no-referrer' as const },
};

/** What helmet answers is the same for every request, so its chain of fifteen handlers is asked once. */
function setSecurityHeaders(): RequestHandler {
  const answered = new ServerResponse(new IncomingMessage(new Socket()));
  const headers: [string, string | number | readonly string[]][] = [];
  answered.setHeader = (name, value) => {
    headers.push([name, value]);
    return answered;
  };
  helmet(securityHeaders)(answered.req, answered, () => undefined);
  return (_request, response, next) => {
    for (const [name, value] of headers) response.setHeader(name, value);
    next();
  };
}

type Locals = { facts: RequestFacts; trace: Trace; operation: string; startedAt: bigint; code: string | null };
const localsOf = new WeakMap<Response, Locals>();

function locals(response: Response): Locals {
  const found = localsOf.get(response);
  if (!found) throw new Error('The request was not begun by beginRequest.');
  return found;
}

function beginRequest(deps: FrameDeps): RequestHandler {
  return (request, response, next) => {
    const requestId = newId('req');
    response.setHeader('X-Request-Id', requestId).setHeader('Cache-Control', 'private, no-cache');
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]));
    const facts = {
      requestId, operationId: '', headers, rawBody: Buffer.alloc(0), ip: clientAddress(request, deps.trustedProxies),
      userAgent: headers['user-agent']?.slice(0, 200) ?? null, ifMatch: headers['if-match'] ?? null,
    };
    localsOf.set(response, { facts, trace: { caller: null, quotas: [] }, operation: 'none', startedAt: process.hrtime.bigint(), code: null });
    response.once('finish', () => report(deps, request, response));
    next();
  };
}

/** Errors: URIError for a malformed percent escape, also in the query where Express is lenient; `validation_error` without a Host. */
const requireWellFormed: RequestHandler = (request, _, next) => {
  decodeURIComponent(request.url);
  if (request.headers.host === undefined && request.httpVersion === '1.1') throw invalid([{ path: 'Host', message: 'is required' }]);
  next();
};

function handlersOf<D extends FrameDeps>(deps: D, operation: Operation<D>): RequestHandler[] {
  const limit = operation.bodyMaxBytes ?? bodyMaxBytesDefault;
  return [
    (request, response, next) => {
      locals(response).operation = operation.id;
      if (operation.noStore) response.setHeader('Cache-Control', 'no-store, private');
      requireJson(request);
      next();
    },
    express.raw({ type: () => true, limit }),
    async (request, response) => {
      const { facts, trace } = locals(response);
      const rawBody: unknown = request.body;
      const withBody = { ...facts, operationId: operation.id, rawBody: Buffer.isBuffer(rawBody) ? rawBody : Buffer.alloc(0) };
      send(response, await runOperation(deps, operation, request, { facts: withBody, trace }));
    },
  ];
}

/** Errors: `unsupported_media_type` for a body that is not `application/json` in UTF-8. */
function requireJson(request: Request): void {
  if (request.headers['transfer-encoding'] === undefined && (request.headers['content-length'] ?? '0') === '0') return;
  const [type = '', ...parameters] = (request.headers['content-type'] ?? '').toLowerCase().split(';').map((part) => part.trim());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice(8).replaceAll('"', '');
  if (type === 'application/json' && (charset === undefined || charset === 'utf-8')) return;
  throw new AppError('unsupported_media_type', 'Send the body as application/json in UTF-8.');
}

/** Answers an existing path asked with another method (contract api.md §4). Errors: `route_not_found`, always. */
function refuseMethod(response: Response, methods: string[]): never {
  response.setHeader('Allow', methods.includes('GET') ? [...methods, 'HEAD'].join(', ') : methods.join(', '));
  throw new AppError('route_not_found', `This address does not answer that method, only ${methods.join(', ')}.`);
}

/** A page outside the envelope, at each of its paths; other methods are refused as everywhere. */
export function servePage(app: express.Express, paths: string[], handler: RequestHandler): void {
  app.get(paths, handler);
  app.all(paths, (_, response) => refuseMethod(response, ['GET']));
}

function send(response: Response, { status, headers, cookies, body }: Answer): void {
  for (const [name, value] of Object.entries({ ...rateLimitHeaders(locals(response).trace.quotas), ...headers })) response.setHeader(name, value);
  if (cookies.length > 0) response.setHeader('Set-Cookie', [...cookies]);
  sendJson(response, status, body);
}

function sendJson(response: Response, status: number, body: Record<string, unknown>): void {
  response.status(status).setHeader('Content-Type', 'application/json; charset=utf-8');
  response.end(JSON.stringify(body));
}

function failed(log: Log) {
  return (error: unknown, _request: Request, response: Response, _next: NextFunction): void => {
    const { facts } = locals(response);
    const appError = toAppError(error);
    locals(response).code = appError.code;
    if (appError.status >= 500) log.error({ requestId: facts.requestId, err: appError.cause ?? appError }, 'request failed');
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const quotas = [...locals(response).trace.quotas, ...(error instanceof RateLimited ? [error.quota] : [])];
    for (const [name, value] of Object.entries(rateLimitHeaders(quotas))) response.setHeader(name, value);
    if (appError.retryAfterSeconds !== undefined) response.setHeader('Retry-After', String(appError.retryAfterSeconds));
    if (appError.code === 'invalid_api_key') response.setHeader('WWW-Authenticate', 'Bearer');
    sendJson(response, appError.status, errorBody(appError, facts.requestId));
  };
}

function report(deps: FrameDeps, request: Request, response: Response): void {
  const { facts, trace, operation, startedAt, code } = locals(response);
  const seconds = Number(process.hrtime.bigint() - startedAt) / 1e9;
  deps.observe?.({ operation, method: request.method, status: response.statusCode, code, seconds });
  const { caller } = trace;
  deps.log.info({
    requestId: facts.requestId, clientRequestId: facts.headers['x-request-id']?.slice(0, 100), operation, status: response.statusCode,
    code: code ?? undefined, ms: Math.round(seconds * 10_000) / 10, orgId: orgIdOf(caller),
    projectId: caller && 'project' in caller ? caller.project.id : undefined, userId: caller?.kind === 'user' ? caller.userId : undefined,
    keyId: caller?.kind === 'apiKey' ? caller.keyId : undefined,
  }, 'request');
}

function orgIdOf(caller: Trace['caller']): string | undefined {
  if (!caller) return undefined;
  if ('org' in caller) return caller.org.id;
  return caller.kind === 'apiKey' ? caller.orgId : undefined;
}

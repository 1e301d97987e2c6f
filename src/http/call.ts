import type { Request } from 'express';
import { actorOf, type Caller, type Cause } from '../core/caller';
import { AppError } from '../core/errors';
import { inTransaction, type Tx } from '../db/transaction';
import { openedOperations } from '../operations/store';
import { authenticate, authorise } from './authenticate';
import { clientNetwork } from './client-address';
import { findKeptAnswer, fingerprintOf, readIdempotencyKey, transactOnce, type IdempotencyScope, type KeptAnswer } from './idempotency';
import { Reply, type Once, type Operation, type Payload, type RateRule, type RequestFacts } from './operation';
import { parseRequest, type Parsed } from './parse';
import type { Quota } from './rate-limit';
import type { FrameDeps } from './frame';

export type Answer = { status: number; headers: Record<string, string>; cookies: readonly string[]; body: Record<string, unknown> };

/** Set while a request is at work: who it turned out to be and what it was counted against, known also when it fails. */
export type Trace = { caller: Caller | null; quotas: Quota[] };

/**
 * One request through the order of api.md §6: authenticate → organisation and project → authorise → rate limit → parse →
 * idempotency → handler. Route, media type and size were settled by the server.
 */
export async function runOperation<D extends FrameDeps>(deps: D, operation: Operation<D>, request: Request, { facts, trace }: { facts: RequestFacts; trace: Trace }): Promise<Answer> {
  const params = cleanParams(request.params);
  const { caller, setCookies } = await authenticate(deps.authenticator, operation, facts.headers, params);
  trace.caller = caller;
  await onRecord(deps, { operation, caller, facts }, async () => authorise(operation, caller, deps.clock.now()));
  if (caller.kind === 'user') trace.quotas.push(await deps.limiter.take(deps.managementRate, caller.userId));
  const parsed = operation.auth.kind === 'signature' ? { query: undefined, body: undefined }
    : parseRequest(operation, { query: onlyStrings(request.query), body: facts.rawBody });
  for (const { rule, key } of ownLimits(deps, operation, { caller, facts, params, ...parsed })) trace.quotas.push(await deps.limiter.take(rule, key));
  const answer = await onRecord(deps, { operation, caller, facts }, () => answerOf(deps, operation, { caller, params, facts, ...parsed }));
  return { ...answer, cookies: [...setCookies, ...answer.cookies] };
}

type Asked<D> = { operation: Operation<D>; caller: Caller; facts: RequestFacts };

/** A member's 403 is part of the organisation's audit; the refusal stands also when it cannot be written. */
async function onRecord<D extends FrameDeps, T>(deps: D, { operation, caller, facts }: Asked<D>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if ('org' in caller && error instanceof AppError && error.status === 403) {
      await deps.recordDenial({ orgId: caller.org.id, projectId: 'project' in caller ? caller.project.id : null, cause: causeOf(operation, caller, facts) })
        .catch((failure: unknown) => deps.log.error({ requestId: facts.requestId, err: failure }, 'a denial was not recorded'));
    }
    throw error;
  }
}

function causeOf<D>(operation: Operation<D>, caller: Caller, { requestId, ip }: RequestFacts): Cause {
  return { actor: actorOf(caller), action: operation.id, requestId, ip };
}

type Ready = Parsed & { caller: Caller; params: Readonly<Record<string, string>>; facts: RequestFacts };

async function answerOf<D extends FrameDeps>(deps: D, operation: Operation<D>, ready: Ready): Promise<Answer> {
  const scope = operation.idempotent === true ? idempotencyScope(operation, ready) : null;
  if (!scope) return handle(deps, operation, ready, (work) => inTransaction(deps.db, work));
  return singleFlight(`${scope.principal}|${scope.operation}|${scope.key}`, async () => {
    const kept = await findKeptAnswer(deps.db.prisma, scope);
    return kept ? replay(kept) : handleOnce(deps, operation, ready, scope);
  });
}

/** Thrown through the handler when its transaction finds that another request has already given the answer. */
class Replayed extends Error {
  constructor(readonly answer: KeptAnswer) { super('The answer was given before.'); }
}

async function handleOnce<D extends FrameDeps>(deps: D, operation: Operation<D>, ready: Ready, scope: IdempotencyScope): Promise<Answer> {
  let transacted = false;
  const transact: Transact = async (work) => {
    if (transacted) throw new Error(`${operation.id} is idempotent and may write in one transaction only.`);
    transacted = true;
    const outcome = await transactOnce(deps.db, scope, work, (result) => keptAnswer(operation, toAnswer(operation, result, ready)));
    if ('replayed' in outcome) throw new Replayed(outcome.replayed);
    return outcome.result;
  };
  try {
    const answer = await handle(deps, operation, ready, transact);
    if (!transacted) throw new Error(`${operation.id} is idempotent and did not use transact.`);
    return answer;
  } catch (error) {
    if (error instanceof Replayed) return replay(error.answer);
    throw error;
  }
}

type Transact = <T extends Payload | Reply<Payload>>(work: (tx: Tx) => Promise<T>) => Promise<T>;

async function handle<D extends FrameDeps>(deps: D, operation: Operation<D>, ready: Ready, transact: Transact): Promise<Answer> {
  const { caller, params, query, body, facts } = ready;
  const call = {
    deps, caller, params, query, body, request: facts,
    cause: causeOf(operation, caller, facts),
    once: operation.idempotent === 'own' ? onceOf({ params, query, body, facts }) : null,
    transact: <T extends Payload | Reply<Payload>>(work: (tx: Tx) => Promise<T>) => withStarts(deps, transact, work),
  };
  return toAnswer(operation, await invoke(operation, call), ready);
}

/** The list of operations holds handlers of many callers and bodies; `authenticate` and `parse` have made them fit. */
function invoke<D>(operation: Operation<D>, call: object): Promise<unknown> {
  const result: unknown = Reflect.apply(operation.handle, operation, [call]);
  return Promise.resolve(result);
}

/** Commit, then answer, then act: the starts are bounded and never awaited; the relay repeats what fails. */
async function withStarts<T extends Payload | Reply<Payload>>(deps: FrameDeps, transact: Transact, work: (tx: Tx) => Promise<T>): Promise<T> {
  let opened: Tx | null = null;
  const result = await transact(async (tx) => {
    opened = tx;
    return work(tx);
  });
  if (opened) for (const operation of openedOperations(opened)) void deps.dispatcher.start(operation);
  return result;
}

function toAnswer<D>(operation: Operation<D>, result: unknown, { params }: Pick<Ready, 'params'>): Answer {
  const reply = result instanceof Reply ? result : null;
  const payload: unknown = reply ? reply.payload : result;
  if (typeof payload !== 'object' || payload === null) throw new Error(`${operation.id} gave no payload.`);
  const body = { ok: true, ...payload };
  const status = reply?.more.status ?? operation.status;
  return { status, cookies: reply?.more.cookies ?? [], body, headers: { ...(status === 202 ? acceptedHeaders(body, params) : {}), ...reply?.more.headers } };
}

/** `Link` to the operation a client can follow (contract api.md §9). */
function acceptedHeaders(body: object, params: Ready['params']): Record<string, string> {
  const headers = { 'Retry-After': '1' };
  if (!('operation' in body) || typeof body.operation !== 'object' || body.operation === null || !('id' in body.operation)) return headers;
  const project = params['projectSlug'] ? `/projects/${params['projectSlug']}` : '';
  return { ...headers, Link: `</v1/api/orgs/${params['orgSlug']}${project}/operations/${String(body.operation.id)}>; rel="monitor"` };
}

function keptAnswer<D>(operation: Operation<D>, { status, headers, body }: Answer): KeptAnswer {
  const secrets = new Set(operation.secrets ?? []);
  return { status, headers, body: Object.fromEntries(Object.entries(body).map(([key, value]) => [key, secrets.has(key) ? null : value])) };
}

function replay({ status, headers, body }: KeptAnswer): Answer {
  return { status, body, cookies: [], headers: { ...headers, 'Idempotency-Replayed': 'true' } };
}

function onceOf({ params, query, body, facts }: Omit<Ready, 'caller'>): Once | null {
  const key = readIdempotencyKey(facts.headers['idempotency-key']);
  return key === null ? null : { key, fingerprint: fingerprintOf({ params, query, body }) };
}

/** Open operations have no principal that a key could belong to: there the header is checked and means nothing. */
function idempotencyScope<D>(operation: Operation<D>, { caller, params, query, body, facts }: Ready): IdempotencyScope | null {
  const key = readIdempotencyKey(facts.headers['idempotency-key']);
  if (key === null || caller.kind === 'anonymous') return null;
  const principal = caller.kind === 'user' ? caller.userId : caller.keyId;
  return { principal, operation: operation.id, key, fingerprint: fingerprintOf({ params, query, body }) };
}

function ownLimits<D>(deps: D, operation: Operation<D>, { caller, facts, params, body }: Ready): { rule: RateRule; key: string }[] {
  if (!operation.limits) return [];
  // eslint-disable-next-line @typescript-eslint/no-unsafe-assignment -- authenticate and parse have made caller and body fit
  const limits: { rule: RateRule; key: string }[] = Reflect.apply(operation.limits, operation, [{ deps, caller, ip: clientNetwork(facts.ip), params, body }]);
  return limits;
}

const flights = new Map<string, Promise<unknown>>();

/**
 * Equal keys of one process run one after another, so they do not hold a database connection each while they wait.
 * Across processes the row is the lock. Errors: `idempotency_in_progress` after 5 s.
 */
async function singleFlight<T>(key: string, run: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 5_000;
  for (let flight = flights.get(key); flight; flight = flights.get(key)) {
    const leftMs = deadline - Date.now();
    if (leftMs <= 0) throw new AppError('idempotency_in_progress', 'The first request with this Idempotency-Key is still at work. Try again in a second.');
    await Promise.race([flight.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, leftMs).unref())]);
  }
  const flight = run();
  flights.set(key, flight);
  try {
    return await flight;
  } finally {
    flights.delete(key);
  }
}

/** U+0000 in a path can name nothing, and PostgreSQL refuses the very question: it becomes a name that does not exist. */
function cleanParams(params: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([key, value]) => [key, String(value).replaceAll('\0', '\uFFFD').toWellFormed()]));
}

function onlyStrings(query: object): Record<string, string | string[] | undefined> {
  return Object.fromEntries(Object.entries(query).map(([key, value]) => [key, Array.isArray(value) ? value.map(String) : typeof value === 'string' ? value : undefined]));
}

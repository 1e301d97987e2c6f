import type { z } from 'zod';
import type { Anonymous, Caller, Cause, KeyCaller, OrgCaller, ProjectCaller, Scope, SessionCaller } from '../core/caller';
import type { ErrorCode } from '../core/errors';
import type { Tx } from '../db/transaction';
import type { Permission } from '../identity/permissions';

/** Who may call: without one of these an operation does not compile (contract api.md §5, §12). */
export type Auth =
  | { kind: 'open' }
  | { kind: 'self' }
  | { kind: 'permission'; permission: Permission; scope: 'org' | 'project' }
  | { kind: 'scope'; scope: Scope }
  | { kind: 'signature' };

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** Requests per period and subject, checked before the request is parsed. Subjects: user, address, org, project. */
export type RateRule = { name: string; limit: number; periodSeconds: number; burst?: number };

/** What a handler answers: the payload beside `ok: true`. */
export type Payload = Record<string, unknown>;

/** A payload with headers or cookies of its own. Most handlers return the bare payload. */
export class Reply<P extends Payload> {
  constructor(readonly payload: P, readonly more: { headers?: Record<string, string>; cookies?: readonly string[]; status?: 200 | 202 }) {}
}

/**
 * What a handler is given. Everything in it has been checked; handlers never re-check what a schema has said.
 * `transact` commits the effect: use it for every write of an operation marked `idempotent`, once.
 */
export interface Call<D, C extends Caller, P, Q, B> {
  readonly deps: D;
  readonly caller: C;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly request: RequestFacts;
  /** For audit rows. */
  readonly cause: Cause;
  /** The Idempotency-Key of an operation that keeps its answers itself, with the fingerprint of the validated request. */
  readonly once: Once | null;
  /** One transaction: the effect, the idempotency row, the audit row last; then the workflows of opened operations are started. */
  transact<T extends Payload | Reply<Payload>>(work: (tx: Tx) => Promise<T>): Promise<T>;
}

export type Once = { readonly key: string; readonly fingerprint: string };

export interface RequestFacts {
  readonly requestId: string;
  readonly operationId: string;
  /** The client's address; IPv6 is cut to its /64 where addresses are counted. */
  readonly ip: string;
  readonly userAgent: string | null;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The exact bytes, for signatures; empty elsewhere. */
  readonly rawBody: Buffer;
  readonly ifMatch: string | null;
}

type Shape = z.ZodType;
type Output<S> = S extends z.ZodType ? z.output<S> : undefined;

/** `{ serviceId: string }` of '/postgres/services/:serviceId'. A malformed id is a 404 like an absent one: it has no schema. */
type ParamsOf<Path extends string> = { readonly [Name in ParamNames<Path>]: string };
type ParamNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}` ? Name | ParamNames<Rest>
  : Path extends `${string}:${infer Name}` ? Name : never;

export interface Definition<D, C extends Caller, Path extends string, Q extends Shape | undefined, B extends Shape | undefined, A extends Shape> {
  /** verbNoun; also the OpenAPI operationId, the audit action and the name of its test file. */
  id: string;
  method: Method;
  /** Below the prefix of the builder used: `/postgres/services/:serviceId`. */
  path: Path;
  summary: string;
  description?: string;
  /** Heading in the documentation. */
  tag: string;
  query?: Q;
  body?: B;
  /** No body and `{}` are the same; for POSTs whose body the specification names "none". */
  bodyOptional?: boolean;
  /** The answer without `ok`. */
  answer: A;
  status?: 200 | 202;
  /** Own errors beside those every operation of its kind may give. */
  errors?: readonly ErrorCode[];
  /** POST that creates or sends: honours Idempotency-Key. `own`: the handler keeps its answers itself, by `call.once`. */
  idempotent?: boolean | 'own';
  /** Members of the answer that are not kept for a replay: they come back null. */
  secrets?: readonly string[];
  /** ✱: needs a session that gave its password within SESSION_FRESH_SECONDS. */
  fresh?: boolean;
  noStore?: boolean;
  bodyMaxBytes?: number;
  /** Limits of its own, by the values the request gave; `key` is the subject. `ip` is what counts as one client: IPv6 cut to its /64. */
  limits?: (call: { deps: D; caller: C; ip: string; params: ParamsOf<Path>; body: Output<B> }) => { rule: RateRule; key: string }[];
  /** A write that is possible while its organisation or project is being deleted; reads always are. */
  whileDeleting?: boolean;
  /** Paths of the same operation without the prefix, as the specification also shows them. */
  aliases?: readonly string[];
  handle(call: Call<D, C, ParamsOf<Path>, Output<Q>, Output<B>>): Promise<z.input<A> | Reply<z.input<A> & Payload>>;
}

/** One route as a value. The list of them in http/routes.ts is the only place where a route is declared. */
export interface Operation<D> extends Omit<Definition<D, never, string, Shape | undefined, Shape | undefined, Shape>, 'handle' | 'limits'> {
  auth: Auth;
  status: 200 | 202;
  limits?: (call: { deps: D; caller: never; ip: string; params: never; body: never }) => { rule: RateRule; key: string }[];
  handle(call: Call<D, never, never, never, never>): Promise<unknown>;
}

export const orgPrefix = '/api/orgs/:orgSlug';
export const projectPrefix = `${orgPrefix}/projects/:projectSlug`;

/** Builders of a product's operations: each fixes who calls and where the path starts. `D` is what its handlers need. */
export function operationsOf<D>() {
  return {
    open: builder<D, Anonymous>('', { kind: 'open' }),
    self: builder<D, SessionCaller>('', { kind: 'self' }),
    signed: builder<D, Anonymous>('', { kind: 'signature' }),
    scoped: <S extends Scope>(scope: S) => builder<D, KeyCaller>('', { kind: 'scope', scope }),
    org: (permission: Permission) => builder<D, OrgCaller>(orgPrefix, { kind: 'permission', permission, scope: 'org' }),
    project: (permission: Permission) => builder<D, ProjectCaller>(projectPrefix, { kind: 'permission', permission, scope: 'project' }),
  };
}

function builder<D, C extends Caller>(prefix: string, auth: Auth) {
  return <A extends Shape, const Path extends string, Q extends Shape | undefined = undefined, B extends Shape | undefined = undefined>(
    definition: Definition<D, C, Path, Q, B, A>,
  ): Operation<D> => ({ ...definition, auth, path: prefix + definition.path, status: definition.status ?? 200 });
}

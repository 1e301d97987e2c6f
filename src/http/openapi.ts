import { z } from 'zod';
import { statusOfCode, type ErrorCode } from '../core/errors';
import { SchemaWriter, type JsonSchema } from './json-schema';
import { errorsByStatus, type Described } from './possible-errors';

export type Parameter = { name: string; in: 'path' | 'query' | 'header'; required: boolean; description?: string; schema: JsonSchema };
type Content = { 'application/json': { schema: JsonSchema } };
export type ResponseObject = { description: string; headers: Record<string, { $ref: string }>; content: Content };
export type OperationObject = {
  operationId?: string;
  'x-alias-of'?: string;
  summary: string;
  description?: string;
  tags: string[];
  security: Record<string, string[]>[];
  'x-permission'?: string;
  'x-scope'?: string;
  'x-fresh-session'?: true;
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, ResponseObject>;
};
export type OpenApiDocument = {
  openapi: '3.1.1';
  info: { title: string; version: string; description: string };
  servers: { url: string; description: string }[];
  tags: { name: string }[];
  paths: Record<string, Record<string, OperationObject>>;
  components: { schemas: Record<string, JsonSchema>; headers: Record<string, object>; securitySchemes: Record<string, object> };
};

/** The OpenAPI 3.1 document of a list of operations; the same list always gives the same text. */
export function openApiDocument(operations: readonly Described[]): OpenApiDocument {
  const requests = operations.flatMap(({ query, body }) => [query, body]).filter((schema) => schema !== undefined);
  const writer = new SchemaWriter(requests, operations.map(({ answer }) => answer));
  const paths: OpenApiDocument['paths'] = {};
  for (const operation of operations) {
    const { operationId, ...described } = operationObject(operation, operation.path, writer);
    at(paths, operation.path)[operation.method] = { operationId, ...described };
    for (const alias of operation.aliases ?? []) {
      const { operationId: _, ...aliased } = operationObject(operation, alias, writer);
      at(paths, alias)[operation.method] = { 'x-alias-of': template(operation.path), ...aliased };
    }
  }
  return {
    openapi: '3.1.1',
    info: { title: 'Holdfast', version: 'v1', description: introduction },
    servers: [{ url: '/v1', description: 'The base address.' }, { url: '/', description: 'The same operations without a version: an alias of /v1.' }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: { schemas: { ...writer.components, Error: errorSchema }, headers: headerComponents, securitySchemes },
  };
}

const introduction = 'Transactional mail, DNS with a security gateway, and PostgreSQL services. Every answer is an object with `ok`; '
  + 'a refusal has `message`, `code` and `requestId`. Work that goes on after a 202 is followed at the address in its `Link` header.';

function at(paths: OpenApiDocument['paths'], path: string): Record<string, OperationObject> {
  return (paths[template(path)] ??= {});
}

/** Express names parameters `:id`, OpenAPI `{id}`. */
export function template(path: string): string {
  return path.replace(/:(\w+)/g, '{$1}');
}

function operationObject(operation: Described, path: string, writer: SchemaWriter): OperationObject & { operationId: string } {
  const { id, summary, description, tag, body, bodyOptional, auth, fresh } = operation;
  return {
    operationId: id, summary, ...(description ? { description } : {}), tags: [tag], security: securityOf(operation),
    ...(auth.kind === 'permission' ? { 'x-permission': auth.permission } : {}),
    ...(auth.kind === 'scope' ? { 'x-scope': auth.scope } : {}),
    ...(fresh ? { 'x-fresh-session': true as const } : {}),
    parameters: [...pathParameters(path), ...queryParameters(operation, writer), ...headerParameters(operation)],
    ...(body ? { requestBody: { required: !bodyOptional, content: json(writer.request(body)) } } : {}),
    responses: responsesOf(operation, writer),
  };
}

/** OpenAPI 3.1 lets a scheme name what it requires also outside OAuth: the permission, the scope. */
function securityOf({ auth }: Described): Record<string, string[]>[] {
  switch (auth.kind) {
    case 'open': return [];
    case 'self': return [{ session: [] }];
    case 'permission': return [{ session: [auth.permission] }];
    case 'scope': return [{ apiKey: [auth.scope] }];
    case 'signature': return [{ signature: [] }];
  }
}

function pathParameters(path: string): Parameter[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({ name, in: 'path', required: true, schema: { type: 'string' } }));
}

function queryParameters({ query }: Described, writer: SchemaWriter): Parameter[] {
  if (!query) return [];
  const { properties, required } = writer.request(query);
  if (typeof properties !== 'object' || properties === null) throw new Error('The query of an operation is an object.');
  return Object.entries(properties).map(([name, member]) => {
    const { description, ...schema } = z.looseObject({ description: z.string().optional() }).parse(member);
    return { name, in: 'query', required: Array.isArray(required) && required.includes(name), ...(description ? { description } : {}), schema };
  });
}

function headerParameters({ idempotent }: Described): Parameter[] {
  if (!idempotent) return [];
  return [{
    name: 'Idempotency-Key', in: 'header', required: false, schema: { type: 'string', minLength: 1, maxLength: 255 },
    description: 'A repeated request with the same key and body has one effect and gets the first answer again. Kept for 24 hours.',
  }];
}

function responsesOf(operation: Described, writer: SchemaWriter): Record<string, ResponseObject> {
  const success = { description: operation.status === 202 ? 'Accepted; the work goes on.' : 'Success.', headers: successHeaders(operation), content: json(enveloped(writer.answer(operation.answer))) };
  const failures = [...errorsByStatus(operation)].map(([status, codes]): [string, ResponseObject] => [String(status), failure(status, codes)]);
  return { [operation.status]: success, ...Object.fromEntries(failures) };
}

function enveloped(schema: JsonSchema): JsonSchema {
  const ok = { type: 'boolean', const: true };
  const { type, properties, required, ...rest } = schema;
  const names: unknown[] = Array.isArray(required) ? required : [];
  if (type !== 'object' || typeof properties !== 'object') return { allOf: [{ type: 'object', properties: { ok }, required: ['ok'] }, schema] };
  return { type, properties: { ok, ...properties }, required: ['ok', ...names], ...rest };
}

function failure(status: number, codes: readonly ErrorCode[]): ResponseObject {
  return {
    description: `${meanings[status] ?? 'Error'}: ${codes.join(', ')}.`,
    headers: { 'X-Request-Id': header('X-Request-Id'), ...(status === 429 ? { 'Retry-After': header('Retry-After') } : {}) },
    content: json({ allOf: [{ $ref: '#/components/schemas/Error' }, { type: 'object', properties: { code: { enum: [...codes] } } }] }),
  };
}

function successHeaders({ auth, status, idempotent, limits }: Described): Record<string, { $ref: string }> {
  const names = [
    'X-Request-Id',
    ...(limits || auth.kind === 'self' || auth.kind === 'permission' ? ['RateLimit-Policy', 'RateLimit'] : []),
    ...(status === 202 ? ['Location', 'Link', 'Retry-After'] : []),
    ...(idempotent ? ['Idempotency-Replayed'] : []),
  ];
  return Object.fromEntries(names.map((name) => [name, header(name)]));
}

function header(name: string): { $ref: string } {
  return { $ref: `#/components/headers/${name}` };
}

function json(schema: JsonSchema): Content {
  return { 'application/json': { schema } };
}

/** The words of the specification. */
const meanings: Readonly<Record<number, string>> = {
  400: 'Invalid input', 401: 'Authentication failure', 402: 'Billing or quota error', 403: 'Permission denied', 404: 'Resource not found',
  429: 'Rate limited', 500: 'Server error',
};

const errorSchema: JsonSchema = {
  type: 'object',
  description: 'Every refusal. Facts that belong to a code (limit, used, required, resetAt, …) stand beside these members.',
  properties: {
    ok: { type: 'boolean', const: false },
    message: { type: 'string', description: 'One sentence for a person.' },
    code: { type: 'string', enum: Object.keys(statusOfCode) },
    requestId: { type: 'string' },
    issues: {
      type: 'array', description: 'With validation_error: every fault found.',
      items: { type: 'object', properties: { path: { type: 'string' }, message: { type: 'string' } }, required: ['path', 'message'] },
    },
  },
  required: ['ok', 'message', 'code', 'requestId'],
};

const headerComponents = {
  'X-Request-Id': { description: 'Names this request; also in error bodies and logs.', schema: { type: 'string' } },
  'RateLimit-Policy': { description: 'The limits this request was counted against.', schema: { type: 'string' } },
  RateLimit: { description: 'What is left of the tightest of them.', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } },
  Location: { description: 'The resource.', schema: { type: 'string' } },
  Link: { description: 'Where the work is followed (rel="monitor").', schema: { type: 'string' } },
  'Idempotency-Replayed': { description: 'true when the answer was given before; a secret in it is null.', schema: { type: 'string', const: 'true' } },
};

const securitySchemes = {
  session: { type: 'apiKey', in: 'cookie', name: '__Host-holdfast_session', description: 'Set by sign-in. Required permissions are named where an operation asks for one.' },
  apiKey: { type: 'http', scheme: 'bearer', description: 'An API key; the required scope is named at the operation.' },
  signature: { type: 'apiKey', in: 'header', name: 'webhook-signature', description: 'HMAC of the raw body, made by the provider.' },
};

import type { z } from 'zod';
import { statusOfCode, type ErrorCode } from '../core/errors';
import type { Operation } from './operation';

/** An operation without its code: what the document, the page and the guards look at. */
export type Described = Omit<Operation<never>, 'handle' | 'limits'> & { limits?: unknown };

/** Codes an operation may answer with: those of the frame that its kind can meet (contract api.md §4–§8) and its own. */
export function errorsOf(operation: Described): ErrorCode[] {
  return [...new Set([...ofInput(operation), ...ofCaller(operation), ...(operation.errors ?? []), 'internal_error' as const])];
}

/** The same by status, in ascending order. */
export function errorsByStatus(operation: Described): Map<number, ErrorCode[]> {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorsOf(operation).toSorted((a, b) => statusOfCode[a] - statusOfCode[b])) {
    byStatus.set(statusOfCode[code], [...(byStatus.get(statusOfCode[code]) ?? []), code]);
  }
  return byStatus;
}

function ofInput({ auth, path, query, idempotent }: Described): ErrorCode[] {
  return [
    'validation_error', 'unsupported_media_type', 'payload_too_large',
    ...(auth.kind === 'signature' ? [] : ['invalid_json' as const]),
    ...(query && hasMember(query, 'cursor') ? ['invalid_cursor' as const] : []),
    ...(idempotent ? ['idempotency_key_reused' as const, 'idempotency_in_progress' as const] : []),
    ...(path.includes('/:') ? ['not_found' as const] : []),
  ];
}

function ofCaller({ auth, method, fresh, limits }: Described): ErrorCode[] {
  const limited: ErrorCode[] = limits ? ['rate_limited'] : [];
  const crossSite: ErrorCode[] = method === 'get' ? [] : ['csrf_rejected'];
  const stale: ErrorCode[] = fresh ? ['reauthentication_required'] : [];
  switch (auth.kind) {
    case 'open': return [...crossSite, ...limited];
    case 'signature': return ['invalid_signature', ...limited];
    case 'scope': return ['invalid_api_key', 'insufficient_scope', ...limited];
    case 'self': return ['unauthenticated', ...crossSite, ...stale, 'rate_limited'];
    case 'permission': return ['unauthenticated', 'forbidden', ...crossSite, ...stale, 'rate_limited'];
  }
}

function hasMember(schema: z.ZodType, name: string): boolean {
  return 'shape' in schema && typeof schema.shape === 'object' && schema.shape !== null && name in schema.shape;
}

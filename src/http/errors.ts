import { AppError } from '../core/errors';

/** The one place where an error becomes an answer. What is not an AppError is ours to mend, and says nothing. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  return fromBodyReader(error) ?? new AppError('internal_error', 'Something went wrong on our side. Nothing was stored; try again.', {}, { cause: error });
}

/** Errors of Express and its body reader are recognised by their `type` and class. */
function fromBodyReader(error: unknown): AppError | null {
  if (error instanceof URIError) return new AppError('validation_error', 'The address holds a malformed percent escape.', { issues: [{ path: '', message: 'malformed percent escape' }] });
  if (error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('Z_')) {
    return new AppError('invalid_json', 'The body could not be unpacked.');
  }
  if (typeof error !== 'object' || error === null || !('type' in error)) return null;
  switch (error.type) {
    case 'entity.too.large': {
      const limit = 'limit' in error && typeof error.limit === 'number' ? error.limit : undefined;
      return new AppError('payload_too_large', limit ? `The body may be at most ${limit} bytes.` : 'The body is too large.', limit ? { limit } : {});
    }
    case 'encoding.unsupported': return new AppError('unsupported_media_type', 'The content encoding is not supported. Send the body as it is, gzip or deflate.');
    case 'request.aborted':
    case 'request.size.invalid': return new AppError('invalid_json', 'The body ended before its announced length.');
    default: return null;
  }
}

/** The error body of api.md §2. Facts never replace the four fixed fields. */
export function errorBody(error: AppError, requestId: string): Record<string, unknown> {
  const fixed = { ok: false, message: error.message, code: error.code, requestId };
  return { ...fixed, ...error.facts, ...fixed };
}

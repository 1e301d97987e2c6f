import { AsyncLocalStorage } from 'node:async_hooks';
import { AppError } from '../../core/errors';
import { TryLater } from '../../core/job-errors';

/** What an ACME server said last within one call (RFC 8555 §6.7): the client library keeps only its prose. */
type Seen = { problem: string | null; retryAfterMs: number | null };
const seenIn = new AsyncLocalStorage<Seen>();

/** Problems another attempt does not mend. */
const final = new Set(['unauthorized', 'rejectedIdentifier', 'unsupportedIdentifier', 'malformed', 'badCSR', 'badPublicKey', 'incorrectResponse', 'externalAccountRequired', 'userActionRequired', 'invalidContact', 'unsupportedContact']);
const retryDefaultMs = 60_000;
/** No type of RFC 8555: servers answer 404 without a problem document as well. */
const gone = 'gone';

/** The server does not know our account any more: a private one was set up anew. */
export class UnknownAccount extends TryLater {
  constructor(cause: unknown) {
    super('The certificate authority does not know our account.', { cause });
  }
}

/** What was asked for is not there: an order of another time, or of another server at this address. */
export class Gone extends TryLater {}

/** Told every answer of the server. */
export function noteAnswer(status: number, body: unknown, retryAfter: unknown): void {
  const seen = seenIn.getStore();
  if (!seen) return;
  if (typeof retryAfter === 'string' && /^\d{1,6}$/.test(retryAfter)) seen.retryAfterMs = Number(retryAfter) * 1_000;
  const problem = status >= 400 ? typeOf(body) ?? (status === 404 ? gone : null) : problemWithin(body);
  if (problem !== null && problem !== 'badNonce') seen.problem = problem;
}

/** Runs one call; what the server refuses becomes our codes: `certificate_rejected` and `certificate_caa_forbids` are final, all else is tried again. */
export async function translated<T>(work: () => Promise<T>): Promise<T> {
  const seen: Seen = { problem: null, retryAfterMs: null };
  try {
    return await seenIn.run(seen, work);
  } catch (error) {
    if (error instanceof AppError || error instanceof TryLater || seen.problem === null) throw error;
    if (seen.problem === 'caa') throw new AppError('certificate_caa_forbids', 'The certificate authority finds CAA records that do not allow it.', {}, { cause: error });
    if (seen.problem === gone) throw new Gone('The certificate authority does not have what it was asked for.', { cause: error });
    if (seen.problem === 'accountDoesNotExist') throw new UnknownAccount(error);
    if (final.has(seen.problem)) throw new AppError('certificate_rejected', `The certificate authority refused the order (${seen.problem}).`, { problem: seen.problem }, { cause: error });
    throw new TryLater(`The certificate authority answered ${seen.problem}.`, { afterMs: seen.problem === 'rateLimited' ? seen.retryAfterMs ?? retryDefaultMs : seen.retryAfterMs ?? 2_000, cause: error });
  }
}

/** `urn:ietf:params:acme:error:caa` is `caa`. */
function typeOf(problem: unknown): string | null {
  if (typeof problem !== 'object' || problem === null || !('type' in problem) || typeof problem.type !== 'string') return null;
  return /^urn:ietf:params:acme:error:(\w+)$/.exec(problem.type)?.[1] ?? null;
}

/** Orders, authorizations and challenges carry the problem that made them invalid. */
function problemWithin(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null;
  const own = 'error' in body ? typeOf(body.error) : null;
  const challenges: unknown = 'challenges' in body ? body.challenges : null;
  return own ?? (Array.isArray(challenges) ? challenges.map(problemWithin).find((found) => found !== null) ?? null : null);
}

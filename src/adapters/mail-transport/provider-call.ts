import type { TransportResult } from '../../mail/ports';
import { diagnosticOf } from '../../mail/rules/replies';

const timeoutMs = 30_000;
const answerMax = 65_536;

export interface ProviderCall {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | FormData;
  /** The provider's id for the mail in its answer; null when there is none. */
  readonly idOf: (answer: unknown) => string | null;
}

/**
 * One call to a provider, its answer in our words: 2xx accepted; 400, 404, 413, 422 rejected; 401, 403 deferred and for
 * operators; 409, 429, 5xx and the network deferred (contract mail.md §6). A line that breaks may have been too late:
 * the call is repeated with the same idempotency key where the provider knows one.
 */
export async function callProvider({ url, headers, body, idOf }: ProviderCall, signal: AbortSignal): Promise<TransportResult> {
  const mxHost = new URL(url).hostname;
  try {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal: bounded });
    const answer = await readAnswer(response);
    return { mxHost, ...judged(response, answer, idOf) };
  } catch (error) {
    return { outcome: 'deferred', mxHost, text: diagnosticOf(reasonOf(error)) ?? '' };
  }
}

function judged({ status, headers }: Response, answer: unknown, idOf: (answer: unknown) => string | null): TransportResult {
  const text = diagnosticOf(wordsOf(answer)) ?? `HTTP ${status}`;
  if (status >= 200 && status < 300) {
    const providerMessageId = idOf(answer);
    return { outcome: 'accepted', text, ...(providerMessageId === null ? {} : { providerMessageId }) };
  }
  if ([400, 404, 413, 422].includes(status)) return { outcome: 'rejected', text };
  const retryAfterSeconds = retryAfterOf(headers.get('retry-after'));
  return {
    outcome: 'deferred', text, ...(retryAfterSeconds === null ? {} : { retryAfterSeconds }), ...(status === 401 || status === 403 ? { operatorFault: true } : {}),
  };
}

/** Seconds of a Retry-After in seconds or as a date (RFC 9110 §10.2.3); null for none. */
export function retryAfterOf(value: string | null, nowMs: number = Date.now()): number | null {
  if (value === null || value.trim() === '') return null;
  if (/^\d{1,9}$/.test(value.trim())) return Number(value);
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - nowMs) / 1_000));
}

async function readAnswer(response: Response): Promise<unknown> {
  const text = await boundedText(response);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function boundedText({ body }: Response): Promise<string> {
  if (!body) return '';
  const stream: AsyncIterable<unknown> = body;
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    if (!(chunk instanceof Uint8Array)) continue;
    chunks.push(chunk);
    length += chunk.length;
    if (length > answerMax) break;
  }
  return Buffer.concat(chunks).toString();
}

function wordsOf(answer: unknown): string {
  if (typeof answer === 'string') return answer;
  return typeof answer === 'object' && answer !== null && 'message' in answer && typeof answer.message === 'string' ? answer.message : '';
}

function reasonOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'the call failed';
  if ('name' in error && (error.name === 'TimeoutError' || error.name === 'AbortError')) return 'no answer in time';
  const { message } = 'cause' in error && isMessage(error.cause) ? error.cause : isMessage(error) ? error : { message: 'the call failed' };
  return message;
}

function isMessage(value: unknown): value is { message: string } {
  return typeof value === 'object' && value !== null && 'message' in value && typeof value.message === 'string' && value.message !== '';
}

import { lookup } from 'node:dns/promises';
import { request as requestHttp, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as requestHttps, type RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import { isGlobalUnicast } from '../../dns/rules/global-addresses';
import type { WebhookAnswer, WebhookCall, WebhookCaller } from '../../mail/ports';
import { webhookUrlFault } from '../../mail/rules/webhook-url';
import { retryAfterOf } from '../mail-transport/provider-call';

export interface CallerOptions {
  /** MAIL_WEBHOOK_ALLOW_PRIVATE: development. */
  readonly allowPrivate: boolean;
  readonly timeoutMs?: number;
  /** Addresses of a name; the system's resolver unless given. */
  readonly resolve?: (name: string) => Promise<readonly string[]>;
}

const timeoutMsDefault = 15_000;
const excerptMax = 4_096;

/**
 * Calls customers' URLs from inside our network (contract mail.md §6): the name is resolved once, every address must be
 * global, and the connection goes to the address that was checked, so that a name cannot change its mind in between.
 * No redirect is followed, no proxy of the environment is used, no connection is kept.
 */
export class CheckedWebhookCaller implements WebhookCaller {
  constructor(private readonly options: CallerOptions) {}

  async post(call: WebhookCall): Promise<WebhookAnswer> {
    const signal = AbortSignal.timeout(this.options.timeoutMs ?? timeoutMsDefault);
    try {
      const { status, retryAfter, excerpt } = await exchange(call, await raced(this.addressOf(call.url), signal), signal);
      return { status, excerpt, error: status >= 300 && status < 400 ? 'Redirects are not followed.' : null, retryAfterSeconds: retryAfterOf(retryAfter) };
    } catch (error) {
      return { status: null, excerpt: null, retryAfterSeconds: null, error: signal.aborted ? 'No answer in time.' : wordsOf(error) };
    }
  }

  /** Errors: a URL or an address nothing is sent to; a name without addresses. */
  private async addressOf(text: string): Promise<string> {
    const { allowPrivate, resolve = systemAddresses } = this.options;
    const fault = webhookUrlFault(text, { allowPrivate });
    if (fault) throw new Error(`The URL ${fault}.`);
    const host = new URL(text).hostname.replace(/^\[|\]$/g, '');
    const addresses = isIP(host) === 0 ? await resolve(host) : [host];
    const [first] = addresses;
    if (first === undefined) throw new Error('The name has no address.');
    if (!allowPrivate && !addresses.every(isGlobalUnicast)) throw new Error('The address is not public.');
    return first;
  }
}

async function systemAddresses(name: string): Promise<string[]> {
  return (await lookup(name, { all: true, verbatim: true })).map(({ address }) => address);
}

type Heard = { status: number; retryAfter: string | null; excerpt: string | null };

function exchange({ url, headers, body }: WebhookCall, address: string, signal: AbortSignal): Promise<Heard> {
  const { protocol, hostname, host, port, pathname, search } = new URL(url);
  const name = hostname.replace(/^\[|\]$/g, '');
  const options: RequestOptions = {
    method: 'POST', host: address, port: port === '' ? undefined : port, path: `${pathname}${search}`, agent: false, signal, setHost: false,
    headers: { Host: host, 'Content-Length': String(Buffer.byteLength(body)), ...headers }, ...(isIP(name) === 0 ? { servername: name } : {}),
  };
  return new Promise((resolve, reject) => {
    const hear = (response: IncomingMessage) => void heard(response).then(resolve, reject);
    const request: ClientRequest = protocol === 'https:' ? requestHttps(options, hear) : requestHttp(options, hear);
    request.on('error', reject).end(body);
  });
}

/** No more is read than is kept. */
async function heard(response: IncomingMessage): Promise<Heard> {
  const stream: AsyncIterable<unknown> = response;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    if (!Buffer.isBuffer(chunk)) continue;
    chunks.push(chunk);
    length += chunk.length;
    if (length >= excerptMax) break;
  }
  response.destroy();
  return { status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] ?? null, excerpt: excerptOf(Buffer.concat(chunks)) };
}

/** At most 4 KiB, also as characters, without what the database cannot keep. */
function excerptOf(bytes: Buffer): string | null {
  const text = bytes.subarray(0, excerptMax).toString().replaceAll('\0', '').slice(0, excerptMax).toWellFormed();
  return text === '' ? null : text;
}

async function raced<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return Promise.race([work, new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('No answer in time.')), { once: true });
  })]);
}

/** Of the network's errors some hold only a code. */
function wordsOf(error: unknown): string {
  const words = typeof error === 'object' && error !== null && 'message' in error && typeof error.message === 'string' ? error.message : '';
  return (words || 'The call failed.').slice(0, 500);
}

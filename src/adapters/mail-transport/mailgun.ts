import type { MailTransport, TransportJob, TransportResult } from '../../mail/ports';
import { callProvider } from './provider-call';

export interface MailgunOptions {
  readonly apiKey: string;
  readonly baseUrl: string;
  /** Null: the sender's. */
  readonly domain: string | null;
}

/** Through Mailgun, which takes our bytes as they are and tells of them with our ids. */
export class MailgunTransport implements MailTransport {
  readonly name = 'mailgun';
  readonly acceptedMeans = 'sent';

  constructor(private readonly options: MailgunOptions) {}

  send({ parts, recipient, messageId, recipientId, mime }: TransportJob, signal: AbortSignal): Promise<TransportResult> {
    const { apiKey, baseUrl, domain } = this.options;
    const sender = domain ?? parts.from.address.slice(parts.from.address.lastIndexOf('@') + 1);
    const body = new FormData();
    body.append('to', recipient);
    body.append('v:holdfast_message', messageId);
    body.append('v:holdfast_recipient', recipientId);
    body.append('message', new Blob([new Uint8Array(mime)], { type: 'message/rfc822' }), 'message.eml');
    return callProvider({
      url: new URL(`/v3/${encodeURIComponent(sender)}/messages.mime`, baseUrl).href, body, idOf,
      headers: { Authorization: `Basic ${Buffer.from(`api:${apiKey}`).toString('base64')}` },
    }, signal);
  }

  async close(): Promise<void> {
    // connections end by themselves
  }
}

/** Without the angle brackets: its events write it so. */
function idOf(answer: unknown): string | null {
  return typeof answer === 'object' && answer !== null && 'id' in answer && typeof answer.id === 'string' ? answer.id.replace(/^<|>$/g, '') : null;
}

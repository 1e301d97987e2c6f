import type { MailTransport, TransportJob, TransportResult } from '../../mail/ports';
import { mailbox } from '../../mail/rules/header-text';
import { callProvider } from './provider-call';

export interface ResendOptions {
  readonly apiKey: string;
  readonly baseUrl: string;
}

/** Through Resend, which builds and signs the message itself. One call per recipient: its events do not name one. */
export class ResendTransport implements MailTransport {
  readonly name = 'resend';
  readonly acceptedMeans = 'sent';

  constructor(private readonly options: ResendOptions) {}

  send({ parts, recipient, messageId, recipientId, idempotencyKey }: TransportJob, signal: AbortSignal): Promise<TransportResult> {
    const body = {
      from: mailbox(parts.from), to: [recipient], subject: parts.subject, text: parts.text,
      ...(parts.html === null ? {} : { html: parts.html }), ...(parts.replyTo ? { reply_to: [mailbox(parts.replyTo)] } : {}),
      headers: { 'X-Holdfast-Id': parts.holdfastId },
      tags: [{ name: 'holdfast_message', value: messageId }, { name: 'holdfast_recipient', value: recipientId }],
    };
    return callProvider({
      url: new URL('/emails', this.options.baseUrl).href, body: JSON.stringify(body), idOf,
      headers: { Authorization: `Bearer ${this.options.apiKey}`, 'Content-Type': 'application/json', 'Idempotency-Key': idempotencyKey },
    }, signal);
  }

  async close(): Promise<void> {
    // connections end by themselves
  }
}

function idOf(answer: unknown): string | null {
  return typeof answer === 'object' && answer !== null && 'id' in answer && typeof answer.id === 'string' ? answer.id : null;
}

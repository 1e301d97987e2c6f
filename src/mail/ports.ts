import type { IncomingHttpHeaders } from 'node:http';

/** What mail needs from outside: somebody who takes a message, and those who tell what became of it. DNS is asked through `dns/ports`. */

/** Who takes a message for one recipient; `send` is called outside any transaction, within `MAIL_ATTEMPT_TIMEOUT_SECONDS`. */
export interface MailTransport {
  readonly name: 'capture' | 'smtp_relay' | 'direct_mx' | 'resend' | 'mailgun';
  /** What an acceptance proves: `delivered` where the recipient's own mail exchanger said 250 (capture, direct_mx). */
  readonly acceptedMeans: 'delivered' | 'sent';
  /** Tries once. Throws only for faults of ours; an abort counts by where it cuts the conversation (`deferred`, after the final dot `interrupted`). */
  send(job: TransportJob, signal: AbortSignal): Promise<TransportResult>;
  close(): Promise<void>;
}

/** Mail of test keys is always captured. */
export interface MailTransports {
  readonly live: MailTransport;
  readonly test: MailTransport;
}

export interface TransportJob {
  readonly messageId: string;
  readonly recipientId: string;
  /** From 1. */
  readonly attempt: number;
  /** The recipient's id: the same over all attempts. */
  readonly idempotencyKey: string;
  readonly envelopeFrom: string;
  readonly recipient: string;
  /** Signed, CRLF lines; the same bytes for every attempt. */
  readonly mime: Buffer;
  /** The same message for providers that build it themselves. */
  readonly parts: ComposedParts;
}

/** A message in the words of its sender, already parsed and checked; Bcc recipients are envelopes only. */
export interface ComposedParts {
  readonly from: Mailbox;
  readonly to: readonly Mailbox[];
  readonly cc: readonly Mailbox[];
  readonly replyTo: Mailbox | null;
  readonly subject: string;
  /** Never absent: html alone gets a text made from it. */
  readonly text: string;
  readonly html: string | null;
  /** Of Date and DKIM `t=`: the acceptance. */
  readonly date: Date;
  /** `<msg_…@sender domain>` */
  readonly rfcMessageId: string;
  /** Value of X-Holdfast-Id. */
  readonly holdfastId: string;
}

/** `name` is '' when the sender gave none; `address` is ASCII, its domain lower case. */
export interface Mailbox {
  readonly name: string;
  readonly address: string;
}

/** What a server said, as far as it said it; `text` ≤ 500 characters without controls. */
export interface Reply {
  readonly code?: number;
  readonly enhancedCode?: string;
  readonly text?: string;
  readonly mxHost?: string;
  /** Protocol version, like `TLSv1.3`. */
  readonly tls?: string;
}

/**
 * refused → bounced; rejected → failed `provider_rejected`; interrupted: the line broke after the final dot, a duplicate is possible.
 * `operatorFault`: the provider refuses us, not the mail (401, 403); deferred, and operators are told.
 */
export interface TransportResult extends Reply {
  readonly outcome: 'accepted' | 'deferred' | 'refused' | 'rejected' | 'interrupted';
  readonly providerMessageId?: string;
  readonly retryAfterSeconds?: number;
  readonly operatorFault?: boolean;
}

/** Webhooks of one provider: proven, then told in our words. */
export interface ProviderEvents {
  readonly provider: string;
  /** True when one of `secrets` signed these bytes lately; constant time, parses nothing but the signature (Mailgun's is in the body). */
  verify(raw: Buffer, headers: IncomingHttpHeaders, secrets: string[], now: Date): boolean;
  /** One per recipient. Errors: `validation_error` for a body that is not this provider's. */
  parse(body: unknown, headers?: IncomingHttpHeaders): CanonicalEvent[];
  /** Where the signature does not cover the body (Mailgun): its one-time token and the only event it may carry. */
  oneTimeToken?(body: unknown): { readonly token: string; readonly eventId: string } | null;
}

/** `hard`: never again; `soft`: perhaps later; `policy`: refused for what we are or say. */
export type BounceClass = 'hard' | 'soft' | 'policy' | 'undetermined';

export interface CanonicalEvent {
  /** With the provider and the recipient: an event told twice counts once. */
  readonly providerEventId: string;
  readonly type: 'delivered' | 'deferred' | 'bounced' | 'complained' | 'rejected' | 'other';
  /** Ours, when the provider repeats it. */
  readonly messageId?: string;
  readonly providerMessageId?: string;
  readonly recipient?: string;
  readonly occurredAt?: Date;
  readonly reply?: Reply;
  readonly bounce?: { readonly class: BounceClass; readonly subType?: string };
  readonly complaint?: { readonly feedbackType?: string };
}

/** Who calls a customer's webhook: at addresses that have been checked, without following anything. */
export interface WebhookCaller {
  /** One POST within 15 s. Never throws: `error` says why there was no answer. */
  post(call: WebhookCall): Promise<WebhookAnswer>;
}

export interface WebhookCall {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface WebhookAnswer {
  /** Null when there was no answer. */
  readonly status: number | null;
  /** ≤ 4 KiB of what was answered. */
  readonly excerpt: string | null;
  readonly error: string | null;
  readonly retryAfterSeconds: number | null;
}

import { createHmac, timingSafeEqual } from 'node:crypto';

/** A signature is believed this long before and after its time. */
export const webhookToleranceMs = 300_000;

/** `whsec_` and the key in base64 (Standard Webhooks 1.0). */
export const webhookSecret = /^whsec_[A-Za-z0-9+/]{32,}={0,2}$/;

export type WebhookHeaders = Readonly<Record<string, string | undefined>>;

/**
 * Whether the raw bytes carry a signature of one of the secrets that is at most five minutes old (Standard Webhooks 1.0:
 * HMAC-SHA-256 of `<id>.<timestamp>.<body>`, any `v1,`). Compared in constant time; never throws.
 */
export function isSignedWebhook(raw: Buffer, headers: WebhookHeaders, secrets: readonly string[], now: Date): boolean {
  const id = headers['webhook-id'] ?? '';
  const timestamp = headers['webhook-timestamp'] ?? '';
  if (id === '' || !/^\d{1,12}$/.test(timestamp) || Math.abs(now.getTime() - Number(timestamp) * 1_000) > webhookToleranceMs) return false;
  const given = (headers['webhook-signature'] ?? '').split(' ').filter((part) => part.startsWith('v1,')).map((part) => Buffer.from(part.slice(3), 'base64'));
  const wanted = secrets.map((secret) => webhookMac(raw, { id, timestamp, secret }));
  return given.some((signature) => wanted.some((mac) => signature.length === mac.length && timingSafeEqual(signature, mac)));
}

/** The bytes that follow `v1,` in base64. */
export function webhookMac(raw: Buffer, { id, timestamp, secret }: { id: string; timestamp: string; secret: string }): Buffer {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(raw).digest();
}

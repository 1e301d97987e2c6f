import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isSignedWebhook } from '../../core/webhook-signature';

/** The value of a header that came once. */
export function header(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

/** Standard Webhooks, under its own header names or Svix's; a set of names is taken as a whole. */
export function isStandardWebhook(raw: Buffer, headers: IncomingHttpHeaders, { secrets, now, prefixes }: { secrets: readonly string[]; now: Date; prefixes: readonly string[] }): boolean {
  return prefixes.some((prefix) => isSignedWebhook(raw, {
    'webhook-id': header(headers, `${prefix}-id`), 'webhook-timestamp': header(headers, `${prefix}-timestamp`), 'webhook-signature': header(headers, `${prefix}-signature`),
  }, secrets, now));
}

/** Whether `given` is the HMAC-SHA-256 of the bytes, in hex, with one of the secrets; every secret is tried, in constant time. */
export function isHexHmac(given: string, bytes: string | Buffer, secrets: readonly string[]): boolean {
  if (!/^[0-9a-f]{64}$/i.test(given)) return false;
  const signature = Buffer.from(given, 'hex');
  return secrets.map((secret) => timingSafeEqual(createHmac('sha256', secret).update(bytes).digest(), signature)).includes(true);
}

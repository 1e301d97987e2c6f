import { webhookMac } from '../../src/core/webhook-signature';

/** Headers of a Standard Webhooks event; `at` moves its clock. */
export function signedHeaders(body: string, { id, secret, at = new Date() }: { id: string; secret: string; at?: Date }): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1_000));
  const mac = webhookMac(Buffer.from(body), { id, timestamp, secret }).toString('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')} v1,${mac}` };
}

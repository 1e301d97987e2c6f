import { Agent, request } from 'node:http';
import { Secrets } from '../../src/core/secrets';
import { newSigningKey } from '../../src/mail/signing-keys';
import { createMailTenant, type MailTenant } from '../../test/support/mail-delivery';
import { Product } from '../../test/support/product';
import type { MailSink } from './mail-sink';

/** The whole product as `npm start` runs it, its mail going to the sink, with a tenant that may send without bounds. */
export async function startMailProduct(sink: MailSink, env: Record<string, string> = {}): Promise<{ product: Product; tenant: MailTenant }> {
  const product = await Product.start({
    MAIL_TRANSPORT: 'smtp_relay', MAIL_RELAY_URL: `smtp://127.0.0.1:${sink.port}`, MAIL_RELAY_TLS: 'off', PENDING_OPERATIONS_MAX: '10000000', LOG_LEVEL: 'error', ...env,
  });
  const { HOLDFAST_MASTER_KEY = '' } = await product.environment();
  const tenant = await createMailTenant(product.database, product.tenant, { ceiling: null, sendsPerSecond: 1_000_000, secrets: new Secrets([HOLDFAST_MASTER_KEY]), signing: await newSigningKey() });
  return { product, tenant };
}

/** 5 KiB of text. */
export const text = `${'x'.repeat(70)}\n`.repeat(72);

export type Accepted = { messageId: string; at: number };
type Sending = { url: string; tenant: MailTenant; count: number; connections: number; /** None: as fast as answers come. */ perSecond?: number; /** Repeat until there is a 202, with an Idempotency-Key. */ insist?: boolean };

/** Sends mails to `r<i>@y.test`; answers what was accepted and when, in no order. */
export async function sendMails({ url, tenant, count, connections, perSecond, insist = false }: Sending): Promise<{ accepted: Accepted[]; seconds: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const accepted: Accepted[] = [];
  const startedAt = performance.now();
  let next = 0;
  const one = async (i: number): Promise<void> => {
    for (;;) {
      const id = await post({ url, tenant, to: `r${i}@y.test`, agent, key: insist ? `bench-${i}` : null }).catch(() => null);
      if (id !== null) return void accepted.push({ messageId: id, at: performance.now() });
      if (!insist) return;
      await new Promise((done) => setTimeout(done, 50));
    }
  };
  await Promise.all(Array.from({ length: connections }, async () => {
    for (let i = next++; i < count; i = next++) {
      const dueInMs = perSecond === undefined ? 0 : startedAt + (i / perSecond) * 1_000 - performance.now();
      if (dueInMs > 0) await new Promise((done) => setTimeout(done, dueInMs));
      await one(i);
    }
  }));
  agent.destroy();
  return { accepted, seconds: (performance.now() - startedAt) / 1_000 };
}

/** The message's id; null for anything but a 202. */
function post({ url, tenant, to, agent, key }: { url: string; tenant: MailTenant; to: string; agent: Agent; key: string | null }): Promise<string | null> {
  const body = JSON.stringify({ from: `Acme <a@${tenant.domain}>`, to: [to], subject: 'Hello', text });
  return new Promise((done, fail) => {
    const sent = request(`${url}/v1/api/mail/send`, {
      method: 'POST', agent, timeout: 20_000,
      headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...(key === null ? {} : { 'idempotency-key': key }) },
    }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', fail).on('end', () => {
        done(response.statusCode === 202 ? /"messageId":"(msg_[0-9a-z]+)"/.exec(Buffer.concat(chunks).toString())?.[1] ?? null : null);
      });
    });
    sent.on('timeout', () => sent.destroy(new Error('no answer'))).on('error', fail).end(body);
  });
}

/** Resolves when the condition holds, or when the time is up: false. */
export async function waitFor(condition: () => boolean | Promise<boolean>, giveUpMs: number): Promise<boolean> {
  for (const deadline = performance.now() + giveUpMs; performance.now() < deadline;) {
    if (await condition()) return true;
    await new Promise((done) => setTimeout(done, 25));
  }
  return false;
}

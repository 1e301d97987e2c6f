import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { readFileIfAny, replaceFile } from '../core/files';
import { demoDomain } from './demo';
import type { AskDemo } from './demo-api';

/** Its service, the domain it sends from, a test key that sends, reads and suppresses, and a key that reads DNS. */
const demoMailShape = z.object({ mailServiceId: z.string(), mailDomain: z.string(), mailApiKey: z.string(), dnsApiKey: z.string() });
export type DemoMail = z.infer<typeof demoMailShape>;

const keptFile = 'demo-keys.json';
const verifiedWithinMs = 12_000;
const domainShape = z.object({ status: z.string(), hostedZoneId: z.string().nullable(), records: z.array(z.object({ required: z.boolean(), published: z.boolean() })) });
const keysShape = z.object({ apiKeys: z.array(z.object({ prefix: z.string(), last4: z.string(), status: z.string() })) });

/**
 * The demo project sends mail: a service, the domain `demo.test` verified through its zone, and keys, the same at every start for as long
 * as they work. Their values stand in the data folder (0600) alone. A domain whose zone came later is published now. Errors: the API refuses.
 */
export async function ensureDemoMail(ask: AskDemo, dir: string): Promise<DemoMail> {
  const file = join(dir, keptFile);
  const kept = demoMailShape.safeParse(JSON.parse(await readFileIfAny(file) ?? 'null')).data;
  const mail = kept && await works(ask, kept) ? kept : await makeMail(ask);
  if (mail !== kept) await replaceFile(file, `${JSON.stringify(mail)}\n`);
  await ensureDomain(ask, mail.mailServiceId);
  return mail;
}

async function works(ask: AskDemo, { mailServiceId, mailApiKey, dnsApiKey }: DemoMail): Promise<boolean> {
  const answer = keysShape.safeParse(await ask('GET', `/mail/services/${mailServiceId}/api-keys`).catch(() => null)).data;
  return [mailApiKey, dnsApiKey].every((key) => answer?.apiKeys.some(({ prefix, last4, status }) => status === 'active' && key.startsWith(prefix) && key.endsWith(last4)) ?? false);
}

async function makeMail(ask: AskDemo): Promise<DemoMail> {
  const { services } = z.object({ services: z.array(z.object({ id: z.string() })) }).parse(await ask('GET', '/mail/services'));
  const oldest = services.at(-1)?.id;
  const mailServiceId = oldest ?? z.object({ mailServiceId: z.string() }).parse(await ask('POST', '/mail/services', { displayName: 'Demo', plan: 'launch' })).mailServiceId;
  const makeKey = async (wish: object) => z.object({ key: z.string() }).parse(await ask('POST', `/mail/services/${mailServiceId}/api-keys`, wish)).key;
  return {
    mailServiceId, mailDomain: demoDomain,
    mailApiKey: await makeKey({ name: 'Demo: sends test mail', mode: 'test', scopes: ['mail:send', 'mail:read', 'mail:suppressions'] }),
    dnsApiKey: await makeKey({ name: 'Demo: reads DNS', scopes: ['dns:read'] }),
  };
}

/** Waits a little for the first check: it needs the records at the name servers. */
async function ensureDomain(ask: AskDemo, mailServiceId: string): Promise<void> {
  const read = async (path: string, method = 'GET', json?: unknown) => z.object({ domain: domainShape }).parse(await ask(method, path, json)).domain;
  let domain = await read(`/mail/services/${mailServiceId}/domains`, 'POST', { domain: demoDomain });
  if (domain.status === 'verified' || domain.status === 'degraded') return;
  if (!domain.records.every(({ required, published }) => published || !required)) {
    await ask('POST', `/mail/domains/${demoDomain}/publish`).catch(() => undefined); // without a zone the domain waits for its records
    domain = await read(`/mail/domains/${demoDomain}`);
    if (domain.hostedZoneId === null) return;
  }
  if (domain.status === 'failed') domain = await read(`/mail/domains/${demoDomain}/verify`, 'POST', {});
  for (const until = Date.now() + verifiedWithinMs; domain.status === 'pending' && Date.now() < until; await pause(100)) domain = await read(`/mail/domains/${demoDomain}`);
}

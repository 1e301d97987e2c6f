import { generateKeyPairSync } from 'node:crypto';
import { pino } from 'pino';
import type { Scope } from '../../src/core/caller';
import { newId, type Id } from '../../src/core/ids';
import { Secrets } from '../../src/core/secrets';
import type { Database } from '../../src/db/client';
import { createAcceptWriter } from '../../src/mail/accept-writer';
import { attemptMessages, type DeliveryDeps } from '../../src/mail/delivery/attempt-messages';
import { createResultWriter } from '../../src/mail/delivery/results';
import type { MailTransport, TransportJob, TransportResult } from '../../src/mail/ports';
import { createSigningKeys } from '../../src/mail/delivery/signing-keys';
import type { MessageProgress } from '../../src/mail/store/claim';
import { sealSigningKey, type NewSigningKey } from '../../src/mail/signing-keys';
import { insertApiKey, insertMailService } from './mail-rows';
import type { Tenant } from './tenant';

export const mailSecrets = new Secrets([Buffer.alloc(32, 7).toString('base64')]);
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 1_024, publicKeyEncoding: { type: 'spki', format: 'der' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' } });
/** The p= tag of every domain made here. */
export const publicKeyTag = publicKey.toString('base64');

/** Signs what is sent: of 1,024 bits unless another is given, because tests make many. */
const testSigningKey = { selector: 'hftest', privateKey, publicKey: publicKeyTag };

export type MailTenant = { serviceId: Id<'mls'>; domainId: Id<'dom'>; domain: string; key: string; testKey: string };

/** A mail service with a verified domain that signs, room for `ceiling` recipients, and a key of each mode, as rows. */
export async function createMailTenant(db: Pick<Database, 'pool'>, owner: Pick<Tenant, 'orgId' | 'projectId'>, options: {
  ceiling?: number | null; status?: 'active' | 'suspended'; scopes?: Scope[]; sendsPerSecond?: number; secrets?: Secrets; signing?: NewSigningKey;
} = {}): Promise<MailTenant> {
  const { ceiling = 1_000_000, scopes = ['mail:send', 'mail:read'], secrets = mailSecrets, signing = testSigningKey } = options;
  const serviceId = await insertMailService(db, owner, options.status);
  await db.pool.query('update mail_service set sends_per_second = $2 where id = $1', [serviceId, options.sendsPerSecond ?? 10_000]);
  const domain = `${serviceId.slice(4).slice(-10)}.test`;
  const domainId = await insertSendingDomain(db, { ...owner, serviceId, domain, secrets, signing });
  await db.pool.query(`insert into mail_usage (mail_service_id, period_start, period_end, included, ceiling)
    values ($1, date_trunc('month', now()), date_trunc('month', now()) + interval '1 month', 10000, $2)`, [serviceId, ceiling]);
  const { key } = await insertApiKey(db, owner, { scopes, serviceId });
  const { key: testKey } = await insertApiKey(db, owner, { scopes, serviceId, mode: 'test' });
  return { serviceId, domainId, domain, key, testKey };
}

export async function insertSendingDomain(db: Pick<Database, 'pool'>, { orgId, projectId, serviceId, domain, secrets = mailSecrets, signing = testSigningKey, status = 'verified' }: {
  orgId: string; projectId: string; serviceId: string; domain: string; secrets?: Secrets; signing?: NewSigningKey; status?: string;
}): Promise<Id<'dom'>> {
  const id = newId('dom');
  await db.pool.query(`insert into mail_domain (id, mail_service_id, org_id, project_id, domain, status, token, return_path, verification_deadline)
    values ($1, $2, $3, $4, $5, $6, 't', 'bounce', now() + interval '72 hours')`, [id, serviceId, orgId, projectId, domain, status]);
  await db.pool.query(`insert into mail_domain_key (domain_id, selector, state, public_key, private_key) values ($1, $2, 'current', $3, $4)`,
    [id, signing.selector, signing.publicKey, sealSigningKey(secrets, id, signing)]);
  return id;
}

/** A transport of the test's own; it keeps what it was asked and answers what it is told. */
export class ScriptedTransport implements MailTransport {
  readonly jobs: TransportJob[] = [];
  readonly name = 'capture' as const;
  constructor(readonly acceptedMeans: 'delivered' | 'sent' = 'delivered', public answer: (job: TransportJob, signal: AbortSignal) => TransportResult | Promise<TransportResult> = () => ({ outcome: 'accepted', code: 250 })) {}

  async send(job: TransportJob, signal: AbortSignal): Promise<TransportResult> {
    this.jobs.push(job);
    return this.answer(job, signal);
  }

  async close(): Promise<void> {}
}

export function deliveryDeps(db: Database, transport: MailTransport, { retrySeconds = [60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800], ...change }: Partial<DeliveryDeps> & { retrySeconds?: number[] } = {}): DeliveryDeps {
  const log = pino({ level: 'silent' });
  const attempts = { running: 0 };
  const config = { MAIL_VERP_SECRET: 'a secret of the tests that is long', MAIL_BOUNCE_DOMAIN: 'bounce.holdfast.test', MAIL_ATTEMPT_TIMEOUT_SECONDS: 30, MAIL_RETRY_SCHEDULE_SECONDS: retrySeconds };
  return {
    db, log, config, attempts, mailTransports: { live: transport, test: transport }, signingKey: createSigningKeys({ db, secrets: mailSecrets }), alertRefusal: () => undefined,
    resultWriter: createResultWriter({ db, log, config }, () => attempts.running), ...change,
  };
}

/** One round over these messages, as the activity makes it. */
export function attempt(deps: DeliveryDeps, messageIds: readonly string[], signals: { stop?: AbortSignal; cut?: AbortSignal } = {}): Promise<MessageProgress[]> {
  const never = new AbortController().signal;
  return attemptMessages(deps, { messageIds, workflowId: 'test', stop: signals.stop ?? never, cut: signals.cut ?? never });
}

/** A message as it is after its 202, without a request. */
export async function acceptMessage(db: Database, tenant: MailTenant, change: { to?: string[]; html?: string | null; text?: string | null; mode?: 'live' | 'test' } = {}): Promise<string> {
  const { to = ['x@y.org'], html = null, text = 'Hello', mode = 'live' } = change;
  const id = newId('msg');
  const writer = createAcceptWriter({ db, quotaNear: () => undefined });
  const outcome = await writer.write({
    id, serviceId: tenant.serviceId, keyId: newId('key'), domainId: tenant.domainId, mode, transport: 'capture', subject: 'Hi', metadata: '{"order":"42"}', text, html, sizeBytes: 500,
    parties: JSON.stringify({ from: { name: 'Acme', address: `a@${tenant.domain}` }, to: to.map((address) => ({ name: '', address })), cc: [], bcc: [], replyTo: null }),
    rfcMessageId: `<${id}@${tenant.domain}>`, recipients: to.map((address) => ({ id: newId('rcp'), kind: 'to' as const, address, addressKey: address.toLowerCase() })),
    maxAgeHours: 72, dispatchAfterSeconds: 0, once: null,
  });
  if (outcome !== 'accepted') throw new Error(`not accepted: ${outcome}`);
  return id;
}

export async function recipientsOf(db: Pick<Database, 'pool'>, messageId: string): Promise<Record<string, any>[]> {
  return (await db.pool.query('select * from mail_recipient where message_id = $1 order by position', [messageId])).rows;
}

export async function messageOf(db: Pick<Database, 'pool'>, messageId: string): Promise<Record<string, any>> {
  return (await db.pool.query('select * from mail_message where id = $1', [messageId])).rows[0] ?? {};
}

/** Type, applied and recipient of every event, in order. */
export async function eventsOf(db: Pick<Database, 'pool'>, messageId: string): Promise<{ type: string; applied: boolean; recipient: string; sequence: number; attempt: number | null; source: string }[]> {
  return (await db.pool.query('select type, applied, recipient, sequence, attempt, source from mail_event where message_id = $1 order by sequence', [messageId])).rows;
}

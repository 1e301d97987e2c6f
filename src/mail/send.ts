import type { KeyCaller } from '../core/caller';
import type { Clock } from '../core/clock';
import { AppError } from '../core/errors';
import { newId } from '../core/ids';
import type { Database } from '../db/client';
import type { Config } from '../config';
import type { AcceptWriter } from './accept-writer';
import { rfcMessageIdOf } from './compose';
import type { PendingMail } from './pending';
import { domainOf } from './rules/addresses';
import { estimatedMimeBytes, recipientsOf, sizeFault, type AddressedTo, type SendBody } from './schemas/send';
import type { MailStarts } from './starts';
import { findKept, readGrounds, type Grounds, type KeptAnswer, type NewMessage } from './store/accept';
import { openUsagePeriod, quotaRefusal } from './quota';

/** What accepting mail needs. */
export interface SendDeps {
  readonly db: Database;
  readonly clock: Clock;
  readonly config: Pick<Config, 'MAIL_TRANSPORT' | 'MAIL_MAX_AGE_HOURS'>;
  readonly acceptWriter: AcceptWriter;
  readonly pendingMail: PendingMail;
  readonly mailStarts: MailStarts;
}

export type Once = { key: string; fingerprint: string };
export type SendAnswer = { kept: KeptAnswer; replayed: boolean };

/**
 * The message is durable, and its delivery will be started; or a repeated Idempotency-Key gets the first answer again.
 * Errors, in this order: `idempotency_key_reused`, `idempotency_in_progress`, `service_suspended`, `domain_not_allowed`,
 * `domain_not_verified`, `message_too_large`, `too_many_pending`, `quota_exceeded` or `spend_limit_reached`.
 */
export async function acceptSend(deps: SendDeps, caller: KeyCaller, body: SendBody, once: Once | null): Promise<SendAnswer> {
  if (!once) return accept(deps, caller, body, null);
  return inTurn(`${caller.serviceId} ${once.key}`, async () => {
    const kept = await replay(deps, caller.serviceId, once);
    return kept ?? accept(deps, caller, body, once);
  });
}

async function accept(deps: SendDeps, caller: KeyCaller, body: SendBody, once: Once | null): Promise<SendAnswer> {
  const recipients = recipientsOf(body);
  const { domainId, sizeBytes } = await judge(deps, caller, body, recipients);
  const claimed = deps.mailStarts.claim();
  const message = newMessage(deps, caller, { body, recipients, domainId, sizeBytes, claimed, once });
  const outcome = await deps.acceptWriter.write(message);
  switch (outcome) {
    case 'accepted':
      deps.mailStarts.accepted({ id: message.id, orgId: caller.orgId, projectId: caller.projectId }, claimed);
      return { kept: answerOf(message.id), replayed: false };
    case 'full': throw await quotaRefusal(deps.db, caller.serviceId, recipients.length);
    case 'busy': throw inProgress();
    case 'repeated': {
      const kept = once && await replay(deps, caller.serviceId, once);
      if (kept) return kept;
      throw inProgress();
    }
  }
}

/** Errors: see acceptSend. Nothing is written but, once a month, the service's row of the running period. */
async function judge(deps: SendDeps, caller: KeyCaller, body: SendBody, recipients: readonly AddressedTo[]): Promise<{ domainId: string; sizeBytes: number }> {
  if (caller.serviceStatus === 'suspended') throw new AppError('service_suspended', 'This mail service is suspended and sends nothing. GET the service to see why.');
  const senderDomain = domainOf(body.from.address);
  if (caller.allowedDomains.length > 0 && !caller.allowedDomains.includes(senderDomain)) {
    throw new AppError('domain_not_allowed', 'This API key may not send from that domain.');
  }
  const grounds = await readGrounds(deps.db, caller.serviceId, senderDomain);
  if (grounds.domainId === null) throw new AppError('domain_not_verified', 'The domain of the sender is not a verified domain of this mail service.');
  const sizeBytes = estimatedMimeBytes(body, recipients);
  const fault = sizeFault(body, sizeBytes);
  if (fault) throw new AppError('message_too_large', `The ${fault.part} may be at most ${fault.limit / 1024 / 1024} MiB.`, { limit: fault.limit });
  await deps.pendingMail.requireRoom();
  if (caller.mode === 'live') await requireQuota(deps, caller, grounds, recipients.length);
  return { domainId: grounds.domainId, sizeBytes };
}

/** A full period is refused without a write; the write decides for all others. */
async function requireQuota(deps: SendDeps, { serviceId, orgId }: KeyCaller, grounds: Grounds, n: number): Promise<void> {
  if (grounds.used === null) return openUsagePeriod(deps.db, { orgId, serviceId, at: deps.clock.now() });
  if (grounds.ceiling !== null && grounds.used + n > grounds.ceiling) throw await quotaRefusal(deps.db, serviceId, n);
}

type Parts = { body: SendBody; recipients: readonly AddressedTo[]; domainId: string; sizeBytes: number; claimed: boolean; once: Once | null };

function newMessage({ config }: SendDeps, caller: KeyCaller, { body, recipients, domainId, sizeBytes, claimed, once }: Parts): NewMessage {
  const id = newId('msg');
  const of = (kind: AddressedTo['kind']) => recipients.filter((one) => one.kind === kind).map(({ name, address }) => ({ name, address }));
  const kept = answerOf(id);
  return {
    id, serviceId: caller.serviceId, keyId: caller.keyId, domainId, mode: caller.mode,
    transport: caller.mode === 'test' ? 'capture' : config.MAIL_TRANSPORT,
    parties: JSON.stringify({ from: body.from, to: of('to'), cc: of('cc'), bcc: of('bcc'), replyTo: body.replyTo ?? null }),
    subject: body.subject, metadata: body.metadata === undefined ? null : JSON.stringify(body.metadata),
    text: body.text ? body.text : null, html: body.html ? body.html : null,
    sizeBytes, rfcMessageId: rfcMessageIdOf(id, body.from), maxAgeHours: config.MAIL_MAX_AGE_HOURS,
    recipients: recipients.map(({ kind, address, addressKey }) => ({ id: newId('rcp'), kind, address, addressKey })),
    dispatchAfterSeconds: claimed ? 2 : 0,
    once: once && { ...once, ...kept },
  };
}

function answerOf(messageId: string): KeptAnswer {
  const path = `/v1/api/mail/messages/${messageId}`;
  return { status: 202, headers: { Location: path, Link: `<${path}>; rel="monitor"` }, body: { messageId, status: 'queued' } };
}

/** Errors: `idempotency_key_reused`. */
async function replay({ db }: SendDeps, serviceId: string, once: Once): Promise<SendAnswer | null> {
  const found = await findKept(db, serviceId, once.key);
  if (!found) return null;
  const { fingerprint, ...kept } = found;
  if (fingerprint !== once.fingerprint) throw new AppError('idempotency_key_reused', 'This Idempotency-Key was used with another request. Use a new key.');
  return { kept, replayed: true };
}

function inProgress(): AppError {
  return new AppError('idempotency_in_progress', 'The first request with this Idempotency-Key is still at work. Try again in a second.');
}

const turns = new Map<string, Promise<unknown>>();

/** Equal keys of one process go one after another, 5 s at most; across processes the kept row is the lock. Errors: `idempotency_in_progress`. */
async function inTurn<T>(key: string, run: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 5_000;
  for (let turn = turns.get(key); turn; turn = turns.get(key)) {
    const leftMs = deadline - performance.now();
    if (leftMs <= 0) throw inProgress();
    await Promise.race([turn.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, leftMs).unref())]);
  }
  const turn = run();
  turns.set(key, turn);
  try {
    return await turn;
  } finally {
    turns.delete(key);
  }
}

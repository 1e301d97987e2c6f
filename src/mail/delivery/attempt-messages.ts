import { withinMs } from '../../core/deadline';
import type { Log } from '../../core/log';
import type { Database } from '../../db/client';
import { composeMail, type ComposedMail } from '../compose';
import type { DkimKey } from '../rules/dkim';
import { envelopeSender } from '../rules/proof';
import type { MailTransport, MailTransports, TransportResult } from '../ports';
import { keepDerivedText, readProgress, readStoredMessages, type MessageProgress, type StoredMessage } from '../store/claim';
import { renewLeases } from '../store/recipients';
import { claimDue, giveBack, leaseSeconds, type Claimed } from './claim';
import type { Refusal } from './refusals';
import type { ResultWriter } from './results';

export interface DeliveryDeps {
  readonly db: Database;
  readonly log: Log;
  readonly config: { MAIL_VERP_SECRET: string; MAIL_BOUNCE_DOMAIN: string; MAIL_ATTEMPT_TIMEOUT_SECONDS: number };
  /** The key pair of a domain by its selector; null when it is gone. */
  readonly signingKey: (domainId: string, selector: string) => Promise<DkimKey | null>;
  readonly mailTransports: MailTransports;
  readonly resultWriter: ResultWriter;
  /** The provider refuses us, not the mail: operators are told. */
  readonly alertRefusal: (refusal: Refusal) => void;
  /** Attempts that are being made in this process. */
  readonly attempts: { running: number };
}

export type AttemptRun = {
  messageIds: readonly string[]; workflowId: string; /** No new recipient is begun once this is aborted; those under way end. */ stop: AbortSignal;
  /** Aborted when the process must end: attempts under way are cut. */ cut: AbortSignal;
};

const claimMax = 50;
const sendingMax = 20;
const renewMs = 5_000;

/**
 * Tries every due recipient of these messages once (contract mail.md §5) and says what is left to do. At most 20 attempts
 * at once; each result is durable before this returns. Errors: the database's; recipients then wait for the end of their lease.
 */
export async function attemptMessages(deps: DeliveryDeps, run: AttemptRun): Promise<MessageProgress[]> {
  const held = new Map<string, Claimed>();
  const renewing = setInterval(() => {
    const leases = [...held.values()].map(({ recipient }) => ({ id: recipient.id, fence: recipient.fence }));
    if (leases.length > 0) renewLeases(deps.db.prisma, leases, leaseSeconds).catch((error: unknown) => deps.log.warn({ err: error }, 'leases were not renewed'));
  }, renewMs);
  try {
    await attemptAll(deps, run, held);
  } finally {
    clearInterval(renewing);
  }
  return readProgress(deps.db, run.messageIds);
}

/** The bytes of each message, or why there are none. */
type Building = Map<string, Promise<ComposedMail | string>>;

/** Claims more whenever half of the room is free, so that a few slow servers do not hold up the others. */
async function attemptAll(deps: DeliveryDeps, run: AttemptRun, held: Map<string, Claimed>): Promise<void> {
  const building: Building = new Map();
  const running = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let waiting: Claimed[] = [];
  for (let more = true; more || waiting.length > 0 || running.size > 0;) {
    if (run.stop.aborted) {
      more = false;
      const unbegun = waiting;
      waiting = [];
      for (const { recipient } of unbegun) held.delete(recipient.id);
      if (unbegun.length > 0) await giveBack(deps.db, unbegun);
    }
    if (more && waiting.length === 0 && running.size <= sendingMax / 2) {
      const { claimed, decided } = await claimDue(deps.db, run.messageIds, { limit: claimMax, workflowId: run.workflowId });
      for (const one of claimed) held.set(one.recipient.id, one);
      waiting = claimed;
      more = decided === claimMax || claimed.length < decided;
      await compose(deps, claimed, building);
    }
    while (waiting.length > 0 && running.size < sendingMax) {
      const [next] = waiting.splice(0, 1);
      if (!next) break;
      const attempt = attemptOne(deps, run, next, building).catch((error: unknown) => void failures.push(error)).finally(() => {
        held.delete(next.recipient.id);
        running.delete(attempt);
      });
      running.add(attempt);
    }
    if (running.size > 0) await Promise.race(running);
  }
  if (failures.length > 0) throw failures[0];
}

/** The bytes of every message are made once, whatever the number of its recipients here. */
async function compose(deps: DeliveryDeps, claimed: readonly Claimed[], building: Building): Promise<void> {
  const fresh = [...new Set(claimed.map(({ message }) => message.id))].filter((id) => !building.has(id));
  if (fresh.length === 0) return;
  const stored = new Map((await readStoredMessages(deps.db, fresh)).map((message) => [message.id, message]));
  for (const id of fresh) {
    const message = stored.get(id);
    const built = message ? build(deps, message) : Promise.resolve('the body of this message is gone');
    built.catch(() => undefined);
    building.set(id, built);
  }
}

/** The same bytes in every attempt: all they are made from is in the row. */
export async function build(deps: Pick<DeliveryDeps, 'db' | 'config' | 'signingKey'>, message: StoredMessage): Promise<ComposedMail | string> {
  const { from, to, cc, replyTo } = message.parties;
  const dkim = message.selector === null ? null : await deps.signingKey(message.domainId, message.selector);
  if (message.selector !== null && dkim === null) return 'the key that signs this message is gone';
  const composed = await composeMail({
    messageId: message.id, from, to, cc, replyTo, subject: message.subject, text: message.text ?? message.derivedText, html: message.html, date: message.createdAt,
  }, { secret: deps.config.MAIL_VERP_SECRET, dkim });
  if (message.text === null && message.derivedText === null && message.html !== null) await keepDerivedText(deps.db.prisma, message.id, composed.parts.text);
  return composed;
}

async function attemptOne(deps: DeliveryDeps, run: AttemptRun, claimed: Claimed, building: Building): Promise<void> {
  const { message } = claimed;
  const transport = message.mode === 'test' ? deps.mailTransports.test : deps.mailTransports.live;
  deps.attempts.running += 1;
  const result = await (async () => {
    const mail = await building.get(message.id) ?? 'the message was not built';
    return typeof mail === 'string' ? unsendable(mail) : send(deps, run, { claimed, mail, transport });
  })().finally(() => {
    deps.attempts.running -= 1;
  });
  if (result.operatorFault) deps.alertRefusal({ transport: transport.name, messageId: message.id, code: result.code ?? null });
  await deps.resultWriter.write({ claimed, result, transport });
}

function unsendable(text: string): TransportResult {
  return { outcome: 'deferred', text };
}

async function send(deps: DeliveryDeps, { cut }: AttemptRun, { claimed, mail, transport }: { claimed: Claimed; mail: ComposedMail; transport: MailTransport }): Promise<TransportResult> {
  const { recipient, message, returnPath } = claimed;
  const { MAIL_BOUNCE_DOMAIN, MAIL_VERP_SECRET, MAIL_ATTEMPT_TIMEOUT_SECONDS } = deps.config;
  try {
    return await withinMs(cut, MAIL_ATTEMPT_TIMEOUT_SECONDS * 1_000, (signal) => transport.send({
      messageId: message.id, recipientId: recipient.id, attempt: recipient.attemptNo, idempotencyKey: recipient.id, recipient: recipient.address,
      envelopeFrom: envelopeSender({ messageId: message.id, recipientIndex: recipient.position }, returnPath ?? MAIL_BOUNCE_DOMAIN, MAIL_VERP_SECRET), ...mail,
    }, signal));
  } catch (error) {
    deps.log.error({ messageId: message.id, recipientId: recipient.id, transport: transport.name, err: error }, 'an attempt failed by a fault of ours');
    return unsendable('the attempt failed for an internal reason');
  }
}

import type { Clock } from '../../core/clock';
import type { Log } from '../../core/log';
import type { Secrets } from '../../core/secrets';
import { webhookMac } from '../../core/webhook-signature';
import type { Database } from '../../db/client';
import type { Listener } from '../../db/listen';
import { inTransaction } from '../../db/transaction';
import type { WebhookAnswer, WebhookCaller } from '../ports';
import { failingAfterHours, verdictOf } from '../rules/webhook-retries';
import { claimDeliveries, nextDeliveryInMs, settleAttempt, type ClaimedDelivery } from '../store/webhook-deliveries';
import { markFailure, markSuccess } from '../store/webhooks';
import { secretPlace } from './endpoints';

export interface SenderDeps {
  readonly db: Database;
  readonly listener: Pick<Listener, 'listen'>;
  readonly clock: Clock;
  readonly secrets: Secrets;
  readonly log: Log;
  readonly webhookCaller: WebhookCaller;
}

export interface WebhookSender {
  /** Ends after the calls that are in flight. */
  stop(): Promise<void>;
}

const inFlightMax = 100;
const perWebhook = 5;
const leaseSeconds = 60;
const idleMaxMs = 1_000;
const failureMs = 2_000;

/**
 * Sends due deliveries, any number of senders side by side: a row is claimed by one of them, and a slow endpoint holds five
 * calls at most, whoever makes them, so it delays no other. A call whose sender died is made again when its lease ends.
 */
export function startWebhookSender(deps: SenderDeps): WebhookSender {
  const inFlight = new Set<Promise<void>>();
  let stopped = false;
  let wake: () => void = () => undefined;
  const unlisten = deps.listener.listen('mail_webhook', () => wake());
  const round = async (): Promise<number> => {
    const claimed = inFlight.size < inFlightMax ? await claim(deps, inFlightMax - inFlight.size) : [];
    for (const delivery of claimed) {
      const call = attempt(deps, delivery).finally(() => {
        inFlight.delete(call);
        wake();
      });
      inFlight.add(call);
    }
    return claimed.length > 0 ? 0 : Math.max(10, Math.min(idleMaxMs, await nextDeliveryInMs(deps.db.prisma) ?? idleMaxMs));
  };
  const run = async () => {
    while (!stopped) {
      const woken = new Promise<void>((resolve) => { wake = resolve; });
      const waitMs = await round().catch((error: unknown) => {
        deps.log.warn({ err: error }, 'webhooks wait for the database');
        return failureMs;
      });
      if (waitMs > 0 && !stopped) await untilWoken(woken, waitMs);
    }
  };
  const running = run();
  return {
    async stop() {
      stopped = true;
      unlisten();
      wake();
      await running;
      await Promise.all(inFlight);
    },
  };
}

/** One round without a loop: everything that is due now has had its attempt. Answers how many calls were made. */
export async function sendDueDeliveries(deps: Omit<SenderDeps, 'listener'>): Promise<number> {
  let made = 0;
  for (let claimed = await claim(deps, inFlightMax); claimed.length > 0; claimed = await claim(deps, inFlightMax)) {
    await Promise.all(claimed.map((delivery) => attempt(deps, delivery)));
    made += claimed.length;
  }
  return made;
}

function claim({ db }: Pick<SenderDeps, 'db'>, limit: number): Promise<ClaimedDelivery[]> {
  return inTransaction(db, (tx) => claimDeliveries(tx, { limit, perWebhook, leaseSeconds }));
}

/** Never rejects: a result that cannot be written is a call that is made again. */
async function attempt(deps: Omit<SenderDeps, 'listener'>, delivery: ClaimedDelivery): Promise<void> {
  try {
    const answer = await deps.webhookCaller.post({ url: delivery.url, headers: signedHeaders(deps, delivery), body: delivery.body });
    await settle(deps, delivery, answer);
  } catch (error) {
    deps.log.warn({ webhookId: delivery.webhookId, eventId: delivery.eventId, err: error }, 'an attempt at a webhook is made again');
  }
}

async function settle({ db }: Pick<SenderDeps, 'db'>, { webhookId, eventId, fence, attempt: number }: ClaimedDelivery, answer: WebhookAnswer): Promise<void> {
  const { state, waitSeconds } = verdictOf(answer, number);
  const { status, excerpt } = answer;
  const error = answer.error ?? (state === 'succeeded' ? null : `HTTP ${status}`);
  await inTransaction(db, async (tx) => {
    if (!await settleAttempt(tx, { webhookId, eventId, fence, state, waitSeconds, status, error, excerpt })) return;
    if (state === 'succeeded') await markSuccess(tx, webhookId);
    else await markFailure(tx, webhookId, { gone: status === 410, failingAfterHours });
  });
}

/** Standard Webhooks 1.0; the time is that of the attempt, the id that of the event. */
function signedHeaders({ secrets, clock }: Pick<SenderDeps, 'secrets' | 'clock'>, { webhookId, eventId, body, secret, formerSecret }: ClaimedDelivery): Record<string, string> {
  const timestamp = String(Math.floor(clock.now().getTime() / 1_000));
  const signatures = [secret, formerSecret].flatMap((sealed) => (sealed === null ? [] : [secrets.open(sealed, secretPlace(webhookId))]))
    .map((opened) => `v1,${webhookMac(Buffer.from(body), { id: eventId, timestamp, secret: opened }).toString('base64')}`);
  return {
    'Content-Type': 'application/json', 'User-Agent': 'Holdfast-Webhooks/1.0', 'webhook-id': eventId, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' '),
  };
}

async function untilWoken(woken: Promise<void>, waitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([woken, new Promise<void>((resolve) => { timer = setTimeout(resolve, waitMs); })]);
  clearTimeout(timer);
}

import type { Config } from '../config';
import type { Clock } from '../core/clock';
import type { Cursors } from '../core/cursor';
import type { Secrets } from '../core/secrets';
import type { Database } from '../db/client';
import type { DnsResolver } from '../dns/ports';
import type { Platform } from '../dns/rules/platform';
import type { ProviderEvents } from './ports';
import type { SendDeps } from './send';

/** What the operations of mail need; deps.ts provides it. */
export interface MailDeps extends Pick<SendDeps, 'acceptWriter' | 'pendingMail' | 'mailStarts'> {
  readonly db: Database;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly secrets: Secrets;
  readonly limiter: { take(rule: { name: string; limit: number; periodSeconds: number; burst?: number }, key: string): Promise<unknown> };
  readonly dnsPlatform: Platform;
  readonly dnsResolver: DnsResolver;
  /** The run of a message looks at it at once; not awaited, and nothing is lost when it does not hear. */
  wakeDelivery(messageId: string): void;
  /** Who may tell of mail, by the name in the path. */
  readonly eventSources: ReadonlyMap<string, { readonly adapter: ProviderEvents; readonly secrets: readonly string[] }>;
  readonly config: Pick<Config, 'MAIL_TRANSPORT' | 'MAIL_BOUNCE_DOMAIN' | 'MAIL_WEBHOOK_ALLOW_PRIVATE' | 'MAIL_MAX_AGE_HOURS'>;
}

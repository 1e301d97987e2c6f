import type { Config } from '../../config';
import type { ProviderEvents } from '../../mail/ports';
import { genericEvents } from './generic';
import { mailersendEvents } from './mailersend';
import { mailgunEvents } from './mailgun';
import { resendEvents } from './resend';

export interface EventsSource {
  readonly events: ProviderEvents;
  readonly secrets: readonly string[];
}

/** Providers that may tell us of mail, by the name in their path: those with a secret. */
export function eventsSources(config: Config): ReadonlyMap<string, EventsSource> {
  const all: EventsSource[] = [
    { events: genericEvents, secrets: config.MAIL_EVENTS_GENERIC_SECRETS }, { events: resendEvents, secrets: config.MAIL_EVENTS_RESEND_SECRETS },
    { events: mailgunEvents, secrets: config.MAIL_EVENTS_MAILGUN_SECRETS }, { events: mailersendEvents, secrets: config.MAIL_EVENTS_MAILERSEND_SECRETS },
  ];
  return new Map(all.filter(({ secrets }) => secrets.length > 0).map((source) => [source.events.provider, source]));
}

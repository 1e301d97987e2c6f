import type { Config } from '../../config';
import type { ProviderEvents } from '../../mail/ports';
import { genericEvents } from './generic';
import { mailersendEvents } from './mailersend';
import { mailgunEvents } from './mailgun';
import { resendEvents } from './resend';

/** Providers that may tell us of mail, by the name in their path: those with a secret. */
export function chooseEventSources(config: Config): ReadonlyMap<string, { readonly adapter: ProviderEvents; readonly secrets: readonly string[] }> {
  const all = [
    { adapter: genericEvents, secrets: config.MAIL_EVENTS_GENERIC_SECRETS }, { adapter: resendEvents, secrets: config.MAIL_EVENTS_RESEND_SECRETS },
    { adapter: mailgunEvents, secrets: config.MAIL_EVENTS_MAILGUN_SECRETS }, { adapter: mailersendEvents, secrets: config.MAIL_EVENTS_MAILERSEND_SECRETS },
  ];
  return new Map(all.filter(({ secrets }) => secrets.length > 0).map((source) => [source.adapter.provider, source]));
}

import type { Config } from '../../config';
import type { DnsResolver } from '../../dns/ports';
import type { MailTransport } from '../../mail/ports';
import { DirectMxTransport } from './direct-mx';
import { MailgunTransport } from './mailgun';
import { ResendTransport } from './resend';
import { SmtpRelayTransport } from './smtp-relay';

/** Who takes live mail (MAIL_TRANSPORT). `capture` is also what test mail goes to, whatever is chosen here. */
export function chooseTransport(config: Config, { capture, resolver }: { capture: MailTransport; resolver: DnsResolver }): MailTransport {
  const common = { heloName: config.MAIL_HELO_NAME, timeoutMs: config.MAIL_ATTEMPT_TIMEOUT_SECONDS * 1_000 };
  switch (config.MAIL_TRANSPORT) {
    case 'capture': return capture;
    case 'smtp_relay': return new SmtpRelayTransport({ ...common, url: config.MAIL_RELAY_URL, connections: config.MAIL_RELAY_CONNECTIONS, tls: config.MAIL_RELAY_TLS });
    case 'direct_mx': return new DirectMxTransport({
      ...common, resolver, port: config.MAIL_MX_PORT, connectionsPerDomain: config.MAIL_MX_CONNECTIONS_PER_DOMAIN, allowPrivate: config.MAIL_MX_ALLOW_PRIVATE,
    });
    case 'resend': return new ResendTransport({ apiKey: config.MAIL_RESEND_API_KEY, baseUrl: config.MAIL_RESEND_BASE_URL });
    case 'mailgun': return new MailgunTransport({ apiKey: config.MAIL_MAILGUN_API_KEY, baseUrl: config.MAIL_MAILGUN_BASE_URL, domain: config.MAIL_MAILGUN_DOMAIN ?? null });
  }
}

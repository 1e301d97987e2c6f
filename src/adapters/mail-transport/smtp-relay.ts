import { isLoopbackAddress } from '../contactable';
import { withinMs } from '../../core/deadline';
import type { MailTransport, TransportJob, TransportResult } from '../../mail/ports';
import { SmtpFault } from './smtp/line';
import { faultResult, spoken } from './smtp/outcome';
import { SessionPool } from './smtp/pool';
import { SmtpSession, type SessionOptions } from './smtp/session';

export interface RelayOptions {
  /** `smtp://` or `smtps://`, with user and password where the relay asks for them. */
  readonly url: string;
  readonly connections: number;
  readonly tls: 'opportunistic' | 'required' | 'off';
  readonly heloName: string;
  readonly timeoutMs: number;
}

const openTimeoutMs = 20_000;
const idleMs = 5_000;
const mailsMax = 100;

/** Through one relay that owns delivery from there on. One recipient per transaction, so that each has an answer of its own. */
export class SmtpRelayTransport implements MailTransport {
  readonly name = 'smtp_relay';
  readonly acceptedMeans = 'sent';
  private readonly pool: SessionPool;
  private readonly session: SessionOptions;

  constructor(private readonly options: RelayOptions) {
    this.pool = new SessionPool({ max: options.connections, mailsMax, idleMs });
    this.session = sessionOptions(options);
  }

  send(job: TransportJob, signal: AbortSignal): Promise<TransportResult> {
    return withinMs(signal, this.options.timeoutMs, (bounded) => this.handOver(job, bounded));
  }

  private async handOver(job: TransportJob, bounded: AbortSignal): Promise<TransportResult> {
    const where: { mxHost: string; tls?: string } = { mxHost: this.session.serverName };
    for (;;) {
      let stale = false;
      try {
        return await this.pool.use('relay', () => openSession(this.session, bounded), bounded, async (session, reused) => {
          if (session.tls) where.tls = session.tls;
          stale = reused;
          const reply = await session.send({ from: job.envelopeFrom, to: job.recipient, mime: job.mime }, bounded);
          return { outcome: 'accepted', ...spoken(reply), ...where };
        });
      } catch (error) {
        if (!stale || !wasClosed(error) || bounded.aborted) return faultResult(error, where);
      }
    }
  }

  async close(): Promise<void> {
    this.pool.close();
  }
}

/** Whether a kept connection turned out to be closed before anything of this mail was said: another one may be tried at once. */
export function wasClosed(error: unknown): boolean {
  return error instanceof SmtpFault && error.phase === 'mail' && (error.reply === null || error.reply.code === 421);
}

/** Where TLS was offered and fails, in the clear, unless it is required or would show credentials. Errors: SmtpFault. */
export async function openSession(options: SessionOptions, signal: AbortSignal): Promise<SmtpSession> {
  try {
    return await SmtpSession.open(options, signal);
  } catch (error) {
    const mayBePlain = options.startTls === 'opportunistic' && (options.credentials === null || options.plainCredentials);
    if (!(error instanceof SmtpFault) || error.phase !== 'starttls' || !mayBePlain || signal.aborted) throw error;
    return SmtpSession.open({ ...options, startTls: 'off' }, signal);
  }
}

function sessionOptions({ url, tls, heloName }: RelayOptions): SessionOptions {
  const { protocol, hostname, port, username, password } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const implicitTls = protocol === 'smtps:';
  return {
    host, port: Number(port) || (implicitTls ? 465 : 25), serverName: host, implicitTls, startTls: tls, heloName, openTimeoutMs,
    checkCertificate: tls === 'required' || (implicitTls && tls !== 'off'),
    credentials: username === '' ? null : { user: decodeURIComponent(username), password: decodeURIComponent(password) },
    plainCredentials: tls === 'off' || isLoopbackAddress(host),
  };
}

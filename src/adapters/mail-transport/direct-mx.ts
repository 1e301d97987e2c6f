import { withinMs } from '../../core/deadline';
import type { MailTransport, TransportJob, TransportResult } from '../../mail/ports';
import { findExchangers, type Exchanger, type ExchangerOptions } from './exchangers';
import { SmtpFault } from './smtp/line';
import { faultResult, spoken } from './smtp/outcome';
import { SessionPool } from './smtp/pool';
import type { SmtpSession, SessionOptions } from './smtp/session';
import { openSession, wasClosed } from './smtp-relay';

export interface DirectMxOptions extends ExchangerOptions {
  readonly port: number;
  readonly heloName: string;
  readonly connectionsPerDomain: number;
  readonly timeoutMs: number;
}

const openTimeoutMs = 15_000;
const idleMs = 5_000;
const mailsMax = 100;

/** What DNS says of the mail before anybody is contacted. */
class Settled extends Error {
  constructor(readonly result: TransportResult) {
    super('settled by DNS');
  }
}

/** To the mail exchangers of the recipient's domain; their 250 is delivery. Encrypted where they can, without a check of certificates (RFC 7435). */
export class DirectMxTransport implements MailTransport {
  readonly name = 'direct_mx';
  readonly acceptedMeans = 'delivered';
  private readonly pool: SessionPool;

  constructor(private readonly options: DirectMxOptions) {
    this.pool = new SessionPool({ max: options.connectionsPerDomain, mailsMax, idleMs });
  }

  send(job: TransportJob, signal: AbortSignal): Promise<TransportResult> {
    return withinMs(signal, this.options.timeoutMs, (bounded) => this.handOver(job, bounded));
  }

  private async handOver(job: TransportJob, bounded: AbortSignal): Promise<TransportResult> {
    const domain = job.recipient.slice(job.recipient.lastIndexOf('@') + 1).toLowerCase();
    let where: { mxHost?: string; tls?: string } = {};
    const reached = (host: string, tls: string | undefined) => {
      where = { mxHost: host, ...(tls ? { tls } : {}) };
    };
    for (;;) {
      let stale = false;
      try {
        return await this.pool.use(domain, () => this.open(domain, bounded, reached), bounded, async (session, reused) => {
          stale = reused;
          reached(session.host, session.tls);
          const reply = await session.send({ from: job.envelopeFrom, to: job.recipient, mime: job.mime }, bounded);
          return { outcome: 'accepted', ...spoken(reply), ...where };
        });
      } catch (error) {
        if (error instanceof Settled) return error.result;
        if (!stale || !wasClosed(error) || bounded.aborted) return faultResult(error, where);
      }
    }
  }

  async close(): Promise<void> {
    this.pool.close();
  }

  /** A session with the first exchanger that takes one. Errors: Settled; SmtpFault of the last that was tried. */
  private async open(domain: string, signal: AbortSignal, reached: (host: string, tls: string | undefined) => void): Promise<SmtpSession> {
    const found = await findExchangers(domain, this.options);
    if ('result' in found) throw new Settled(found.result);
    let last: unknown = new SmtpFault('connect', null, 'no exchanger was tried');
    for (const to of found.hosts.flatMap(endpointsOf)) {
      if (signal.aborted) break;
      reached(to.host, undefined);
      try {
        return await openSession(this.session(to), signal);
      } catch (error) {
        if (!(error instanceof SmtpFault)) throw error;
        last = error;
      }
    }
    throw last instanceof Error ? last : new Error('No exchanger was tried.');
  }

  private session({ host, address }: { host: string; address: string }): SessionOptions {
    const { port, heloName } = this.options;
    return {
      host: address, port, serverName: host, implicitTls: false, checkCertificate: false, heloName, startTls: 'opportunistic', credentials: null,
      plainCredentials: false, openTimeoutMs,
    };
  }
}

function endpointsOf({ host, addresses }: Exchanger): { host: string; address: string }[] {
  return addresses.map((address) => ({ host, address }));
}

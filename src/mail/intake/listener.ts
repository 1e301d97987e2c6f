import type { SMTPServerOptions } from 'smtp-server';
import type { Config } from '../../config';
import { createAuthority, issueLeaf } from '../../core/certificates';
import type { Log } from '../../core/log';
import { AddressLimits, addressLimitsDefault, type AddressLimitOptions } from './address-limits';
import { acceptReport, isReportAddress, type IntakeDeps } from './accept';

export interface IntakeListener {
  /** host:port */
  readonly address: string;
  /** Ends after what is being taken. */
  close(): Promise<void>;
}

type ListenerDeps = IntakeDeps & {
  readonly log: Log; readonly config: IntakeDeps['config'] & Pick<Config, 'MAIL_INBOUND_HOST' | 'MAIL_INBOUND_PORT' | 'MAIL_HELO_NAME'>;
  readonly addressLimits?: AddressLimitOptions;
};

const bytesMax = 1024 * 1024;
const recipientsMax = 10;
const clientsMax = 100;
const idleMs = 60_000;

/** Where bounces and complaints arrive by SMTP. 250 is said when the report is durable, 451 when it cannot be made so. */
export async function startIntakeListener(deps: ListenerDeps): Promise<IntakeListener> {
  const { SMTPServer } = await import('smtp-server');
  const { MAIL_INBOUND_HOST: host, MAIL_INBOUND_PORT: port, MAIL_HELO_NAME: name } = deps.config;
  // For STARTTLS: servers that bring reports encrypt without asking who signed the certificate (RFC 7435).
  const { key, certificate } = issueLeaf(createAuthority('Holdfast report intake'), { dnsNames: [name], ipAddresses: [] });
  const server = new SMTPServer({
    name, banner: 'Holdfast report intake', size: bytesMax, maxClients: clientsMax, socketTimeout: idleMs, closeTimeout: 5_000, disabledCommands: ['AUTH'],
    key, cert: certificate, disableReverseLookup: true, logger: false, ...boundsOf(deps), ...takingOf(deps),
  });
  server.on('error', (error) => deps.log.debug({ err: error }, 'a conversation of the report intake broke'));
  await new Promise<void>((done, fail) => {
    server.server.once('error', fail);
    server.listen(port, host, done);
  });
  const bound = server.server.address();
  return {
    address: `${host.includes(':') ? `[${host}]` : host}:${typeof bound === 'object' && bound ? bound.port : port}`,
    close: () => new Promise((done) => server.close(done)),
  };
}

/** What one address may do at once and in a minute. */
function boundsOf({ addressLimits = addressLimitsDefault }: ListenerDeps): Pick<SMTPServerOptions, 'onConnect' | 'onClose' | 'onMailFrom'> {
  const limits = new AddressLimits(addressLimits);
  const refused = new Set<string>();
  return {
    onConnect({ id, remoteAddress }, done) {
      if (limits.entered(remoteAddress)) return done();
      refused.add(id);
      done(refusal(421, '4.7.0 Too many connections from your address'));
    },
    onClose({ id, remoteAddress }) {
      if (!refused.delete(id)) limits.left(remoteAddress);
    },
    onMailFrom(_address, { remoteAddress }, done) {
      done(limits.mayBring(remoteAddress) ? null : refusal(450, '4.7.0 Too many reports from your address, try again in a minute'));
    },
  };
}

function takingOf(deps: ListenerDeps): Pick<SMTPServerOptions, 'onRcptTo' | 'onData'> {
  return {
    onRcptTo({ address }, { envelope }, done) {
      if (!isReportAddress(deps, address)) return done(refusal(550, '5.1.1 No such address here'));
      done(envelope.rcptTo.length >= recipientsMax ? refusal(452, '4.5.3 Too many recipients') : null);
    },
    onData(stream, { envelope }, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => {
        if (stream.byteLength <= bytesMax) chunks.push(chunk);
      });
      stream.on('end', () => {
        if (stream.sizeExceeded) return done(refusal(552, '5.3.4 The message is too big'));
        void take(deps, envelope.rcptTo.map(({ address }) => address), Buffer.concat(chunks)).then((answer) => done(answer));
      });
    },
  };
}

/** Null when every recipient's report is durable or says nothing of ours. */
async function take(deps: ListenerDeps, to: readonly string[], raw: Buffer): Promise<Error | null> {
  if (hasBareLineEnd(raw)) return refusal(550, '5.6.11 Lines end with CRLF');
  try {
    for (const address of to) deps.log.info({ result: await acceptReport(deps, address, raw) }, 'a report came in');
    return null;
  } catch (error) {
    deps.log.warn({ err: error }, 'a report could not be stored');
    return refusal(451, '4.3.0 Try again later');
  }
}

/** A line feed or carriage return of its own means other line ends to other servers: smuggling (RFC 5321 §2.3.8). */
function hasBareLineEnd(raw: Buffer): boolean {
  return /[^\r]\n|^\n|\r(?!\n)/.test(raw.toString('latin1'));
}

function refusal(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}

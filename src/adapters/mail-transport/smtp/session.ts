import { withinMs } from '../../../core/deadline';
import { SmtpFault, SmtpLine, type Endpoint, type Phase, type SmtpReply } from './line';

export interface SessionOptions extends Endpoint {
  readonly heloName: string;
  /** `opportunistic`: when it is offered. */
  readonly startTls: 'off' | 'opportunistic' | 'required';
  readonly credentials: { readonly user: string; readonly password: string } | null;
  /** Whether credentials may go over a line in the clear. */
  readonly plainCredentials: boolean;
  /** From connecting to the end of EHLO and AUTH. */
  readonly openTimeoutMs: number;
}

export interface Envelope {
  readonly from: string;
  readonly to: string;
  /** CRLF lines. */
  readonly mime: Buffer;
}

/** A conversation in which mails can be handed over, one after the other (RFC 5321), one recipient each. */
export class SmtpSession {
  /** Mails given to it. */
  mails = 0;
  private resetFirst = false;

  private constructor(private readonly line: SmtpLine, readonly host: string, private readonly extensions: ReadonlySet<string>) {}

  /** Errors: SmtpFault with the phase in which it failed. */
  static open(options: SessionOptions, signal: AbortSignal): Promise<SmtpSession> {
    return withinMs(signal, options.openTimeoutMs, (bounded) => SmtpSession.openWithin(options, bounded));
  }

  private static async openWithin(options: SessionOptions, bounded: AbortSignal): Promise<SmtpSession> {
    const line = await SmtpLine.open(options, bounded);
    try {
      return await line.during(bounded, async () => {
        await expect2xx(line, 'banner', line.reply());
        const extensions = await upgraded(line, options, bounded, await greet(line, options.heloName));
        if (options.credentials) await authenticate(line, options, options.credentials, extensions);
        return new SmtpSession(line, options.serverName || options.host, extensions);
      });
    } catch (error) {
      line.quit();
      throw error;
    }
  }

  get usable(): boolean {
    return this.line.usable;
  }

  get tls(): string | undefined {
    return this.line.tls;
  }

  /** Handed over: the server's word for it. Errors: SmtpFault; of phase `dot` without a reply nobody knows whether it was taken. */
  async send(envelope: Envelope, signal: AbortSignal): Promise<SmtpReply> {
    this.mails += 1;
    try {
      return await this.line.during(signal, async () => {
        await this.begin(envelope);
        return this.transfer(envelope.mime);
      });
    } catch (error) {
      this.resetFirst = true;
      if (error instanceof SmtpFault && (error.reply === null || error.reply.code === 421)) this.close();
      throw error;
    }
  }

  close(): void {
    this.line.quit();
  }

  /** MAIL, RCPT and DATA; in one go where the server takes them so (RFC 2920). */
  private async begin({ from, to }: Envelope): Promise<void> {
    const { line } = this;
    if (this.resetFirst) {
      line.phase = 'mail';
      await expect2xx(line, 'mail', line.command('RSET'));
      this.resetFirst = false;
    }
    const mail = `MAIL FROM:<${wireAddress(from)}>`;
    const rcpt = `RCPT TO:<${wireAddress(to)}>`;
    if (!this.extensions.has('PIPELINING')) {
      await expect2xx(line, 'mail', line.command(mail));
      await expect2xx(line, 'rcpt', line.command(rcpt));
      await expectData(line, line.command('DATA'));
      return;
    }
    line.phase = 'mail';
    const replies = [line.command(`${mail}\r\n${rcpt}\r\nDATA`), line.reply(), line.reply()] as const;
    for (const reply of replies) reply.catch(() => undefined);
    try {
      await expect2xx(line, 'mail', replies[0]);
      await expect2xx(line, 'rcpt', replies[1]);
    } catch (error) {
      if (error instanceof SmtpFault && error.reply !== null) await withdraw(line, Promise.all(replies));
      throw error;
    }
    await expectData(line, replies[2]);
  }

  /** The bytes with every leading dot doubled, then the final dot: only from there on is it the server's. */
  private async transfer(mime: Buffer): Promise<SmtpReply> {
    const { line } = this;
    await line.write(dotStuffed(mime));
    line.phase = 'dot';
    return expect2xx(line, 'dot', line.command('.'));
  }
}

/** What EHLO offers, in upper case; nothing from a server that only knows HELO. */
async function greet(line: SmtpLine, heloName: string): Promise<ReadonlySet<string>> {
  line.phase = 'ehlo';
  const reply = await line.command(`EHLO ${heloName}`);
  if (reply.code >= 200 && reply.code < 300) return new Set(reply.lines.slice(1).map((text) => text.trim().toUpperCase()));
  if (reply.code < 500) throw fault('ehlo', reply);
  await expect2xx(line, 'ehlo', line.command(`HELO ${heloName}`));
  return new Set();
}

async function upgraded(line: SmtpLine, options: SessionOptions, signal: AbortSignal, offered: ReadonlySet<string>): Promise<ReadonlySet<string>> {
  if (options.implicitTls || options.startTls === 'off') return offered;
  const required = options.startTls === 'required';
  if (!offered.has('STARTTLS')) {
    if (required) throw new SmtpFault('starttls', null, 'The server offers no TLS.');
    return offered;
  }
  line.phase = 'starttls';
  const reply = await line.command('STARTTLS');
  if (reply.code !== 220) {
    if (required) throw fault('starttls', reply);
    return offered;
  }
  await line.upgrade(options, signal);
  return greet(line, options.heloName);
}

async function authenticate(line: SmtpLine, options: SessionOptions, { user, password }: { user: string; password: string }, extensions: ReadonlySet<string>): Promise<void> {
  line.phase = 'auth';
  if (line.tls === undefined && !options.plainCredentials) throw new SmtpFault('auth', null, 'Credentials are not sent over a line without TLS.');
  const methods = [...extensions].find((text) => text.startsWith('AUTH'))?.split(/[ =]/).slice(1) ?? [];
  if (methods.includes('PLAIN') || !methods.includes('LOGIN')) {
    await expect2xx(line, 'auth', line.command(`AUTH PLAIN ${base64(`\0${user}\0${password}`)}`));
    return;
  }
  for (const text of ['AUTH LOGIN', base64(user)]) {
    const reply = await line.command(text);
    if (reply.code !== 334) throw fault('auth', reply);
  }
  await expect2xx(line, 'auth', line.command(base64(password)));
}

/** DATA was sent along although the envelope is refused: a server that went on is given nothing. */
async function withdraw(line: SmtpLine, replies: Promise<readonly SmtpReply[]>): Promise<void> {
  const last = await replies.then((all) => all.at(-1), () => undefined);
  if (last?.code === 354) await line.command('.').catch(() => undefined);
}

async function expect2xx(line: SmtpLine, phase: Phase, replied: Promise<SmtpReply>): Promise<SmtpReply> {
  line.phase = phase;
  const reply = await replied;
  if (reply.code < 200 || reply.code > 299) throw fault(phase, reply);
  return reply;
}

async function expectData(line: SmtpLine, replied: Promise<SmtpReply>): Promise<void> {
  line.phase = 'data';
  const reply = await replied;
  if (reply.code !== 354) throw fault('data', reply);
}

function fault(phase: Phase, reply: SmtpReply): SmtpFault {
  return new SmtpFault(phase, reply, `${reply.code} ${reply.lines.join(' ')}`);
}

/** Checked long before; here so that no fault elsewhere becomes a command. */
function wireAddress(address: string): string {
  if (!/^[\x21-\x7e]*$/.test(address) || /[<>]/.test(address)) throw new Error('An envelope address holds what an address cannot.');
  return address;
}

function dotStuffed(mime: Buffer): Buffer {
  const dotted = mime.includes('\r\n.') || mime[0] === 0x2e;
  const stuffed = dotted ? Buffer.from(mime.toString('latin1').replace(/^\.|\r\n\./g, '$&.'), 'latin1') : mime;
  return mime.subarray(-2).equals(Buffer.from('\r\n')) ? stuffed : Buffer.concat([stuffed, Buffer.from('\r\n')]);
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

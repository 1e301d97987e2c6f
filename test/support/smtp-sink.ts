import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

export type SunkMail = { from: string; to: string[]; bytes: Buffer; secure: boolean; session: string };
/** Where a client's conversation is answered otherwise: a reply code with text, `drop` to cut the line, `lost` to keep the mail and cut the line, `hang` to say nothing. */
export type Trouble = { at: 'mail' | 'rcpt' | 'data'; answer: `${number} ${string}` | 'drop' | 'lost' | 'hang'; to?: string; /** How often; for ever unless given. */ times?: number };

/** A real mail server on loopback that keeps what it takes. */
export class SmtpSink {
  readonly mails: SunkMail[] = [];
  readonly trouble: Trouble[] = [];
  /** Troubles that clients have met. */
  readonly met: Trouble[] = [];
  /** Before every answer at the end of a mail. */
  delayMs = 0;
  connections = 0;
  open = 0;
  openMost = 0;
  private readonly server: SMTPServer;

  private constructor(options: SMTPServerOptions) {
    this.server = new SMTPServer({
      disabledCommands: ['AUTH'], disableReverseLookup: true, authOptional: true, logger: false, ...options,
      onConnect: (_session, done) => {
        this.connections += 1;
        this.open += 1;
        this.openMost = Math.max(this.openMost, this.open);
        done();
      },
      onClose: () => {
        this.open -= 1;
      },
      onMailFrom: (_address, session, done) => this.answer('mail', session.id, '', done),
      onRcptTo: ({ address }, session, done) => this.answer('rcpt', session.id, address, done),
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => {
          const { mailFrom, rcptTo } = session.envelope;
          const to = rcptTo.map(({ address }) => address);
          const keep = () => this.mails.push({ from: mailFrom ? mailFrom.address : '', to, bytes: Buffer.concat(chunks), secure: session.secure, session: session.id });
          if (this.trouble.some((one) => one.at === 'data' && one.answer === 'lost' && applies(one, to[0] ?? ''))) keep();
          const answer = () => this.answer('data', session.id, to[0] ?? '', (error) => {
            if (!error) keep();
            done(error);
          });
          if (this.delayMs === 0) answer();
          else setTimeout(answer, this.delayMs);
        });
      },
    });
    this.server.on('error', () => undefined);
  }

  static async start(options: SMTPServerOptions = {}, host = '127.0.0.1', port = 0): Promise<SmtpSink> {
    const sink = new SmtpSink(options);
    await new Promise<void>((done, fail) => {
      sink.server.server.once('error', fail);
      sink.server.listen(port, host, done);
    });
    return sink;
  }

  get port(): number {
    const address = this.server.server.address();
    return isAddress(address) ? address.port : 0;
  }

  /** Cuts every line. */
  cut(): void {
    for (const connection of this.lines()) connection.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise<void>((done) => this.server.close(done));
  }

  private answer(at: Trouble['at'], session: string, to: string, done: (error?: Error | null) => void): void {
    const found = this.trouble.find((one) => one.at === at && applies(one, to));
    if (!found) return done();
    if (found.times !== undefined) found.times -= 1;
    this.met.push({ ...found, to });
    if (found.answer === 'hang') return;
    if (found.answer === 'drop' || found.answer === 'lost') return this.cut();
    const [code = '', ...words] = found.answer.split(' ');
    done(Object.assign(new Error(words.join(' ')), { responseCode: Number(code), session }));
  }

  private lines(): { destroy(): void }[] {
    return [...this.server.connections].flatMap((connection) => {
      const socket: unknown = '_socket' in connection ? connection._socket : null;
      return isDestroyable(socket) ? [socket] : [];
    });
  }
}

function applies({ to, times }: Trouble, recipient: string): boolean {
  return times !== 0 && (to === undefined || to === recipient);
}

function isAddress(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}

function isDestroyable(value: unknown): value is { destroy(): void } {
  return typeof value === 'object' && value !== null && 'destroy' in value && typeof value.destroy === 'function';
}

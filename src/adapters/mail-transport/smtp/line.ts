import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, TLSSocket } from 'node:tls';

/** How far a conversation had come: what a fault means depends on it (contract mail.md §4.5). `dot`: the whole message was on its way. */
export type Phase = 'connect' | 'banner' | 'ehlo' | 'starttls' | 'auth' | 'mail' | 'rcpt' | 'data' | 'dot';

export type SmtpReply = { readonly code: number; readonly lines: readonly string[] };

/** A conversation that ended without what was asked for: `reply` is what the server said, null when the line broke or time was up. */
export class SmtpFault extends Error {
  override readonly name = 'SmtpFault';
  constructor(readonly phase: Phase, readonly reply: SmtpReply | null, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}

export interface Endpoint {
  /** An address or a name. */
  readonly host: string;
  readonly port: number;
  /** For SNI and the certificate; '' when unknown. */
  readonly serverName: string;
  readonly implicitTls: boolean;
  readonly checkCertificate: boolean;
}

const replyMax = 65_536;

/** One connection: commands out, replies in, in order. Every wait ends when the line does. */
export class SmtpLine {
  phase: Phase = 'connect';
  private text = '';
  private lines: string[] = [];
  private readonly waiting: { resolve: (reply: SmtpReply) => void; reject: (fault: SmtpFault) => void }[] = [];
  private ended: string | null = null;

  private constructor(private socket: Socket) {
    this.attach(socket);
  }

  /** Connected, with TLS where it is implicit. Errors: SmtpFault of phase `connect`. */
  static async open(to: Endpoint, signal: AbortSignal): Promise<SmtpLine> {
    const socket = to.implicitTls ? connectTls({ host: to.host, port: to.port, ...tlsOptions(to) }) : connectTcp({ host: to.host, port: to.port });
    await ready(socket, to.implicitTls ? 'secureConnect' : 'connect', signal, 'connect');
    socket.setNoDelay(true);
    return new SmtpLine(socket);
  }

  get usable(): boolean {
    return this.ended === null && this.socket.writable;
  }

  /** Like `TLSv1.3`; undefined in the clear. */
  get tls(): string | undefined {
    return this.socket instanceof TLSSocket ? this.socket.getProtocol() ?? undefined : undefined;
  }

  /** The next reply. Errors: SmtpFault of the present phase when the line ends first. */
  reply(): Promise<SmtpReply> {
    return new Promise((resolve, reject) => {
      if (this.ended !== null) reject(new SmtpFault(this.phase, null, this.ended));
      else this.waiting.push({ resolve, reject });
    });
  }

  command(text: string): Promise<SmtpReply> {
    this.socket.write(`${text}\r\n`);
    return this.reply();
  }

  /** Resolves when the bytes have left this process. Errors: SmtpFault of the present phase. */
  write(bytes: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.socket.write(bytes, (error) => (error ? reject(new SmtpFault(this.phase, null, error.message, { cause: error })) : resolve()));
    });
  }

  /** The same line, encrypted. What came before the handshake is not believed after it. Errors: SmtpFault of phase `starttls`. */
  async upgrade(to: Endpoint, signal: AbortSignal): Promise<void> {
    if (this.text !== '' || this.lines.length > 0) throw new SmtpFault('starttls', null, 'The server spoke before TLS began.');
    const plain = this.socket;
    for (const event of ['data', 'close', 'error']) plain.removeAllListeners(event);
    const socket = connectTls({ socket: plain, ...tlsOptions(to) });
    await ready(socket, 'secureConnect', signal, 'starttls').catch((error: unknown) => {
      this.ended = 'TLS failed';
      plain.on('error', () => undefined).destroy();
      throw error;
    });
    this.socket = socket;
    this.attach(socket);
  }

  /** While `work` runs, an abort ends the line. */
  async during<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const abort = () => this.end(reasonOf(signal));
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    try {
      return await work();
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** Says goodbye without waiting for an answer. */
  quit(): void {
    if (this.usable && this.waiting.length === 0) this.socket.end('QUIT\r\n');
    setTimeout(() => this.socket.destroy(), 1_000).unref();
    this.ended ??= 'the connection was closed';
  }

  end(why: string): void {
    this.ended ??= why;
    this.socket.destroy();
    for (const { reject } of this.waiting.splice(0)) reject(new SmtpFault(this.phase, null, this.ended));
  }

  private attach(socket: Socket): void {
    socket.on('data', (chunk: Buffer) => this.take(chunk));
    socket.on('error', (error) => this.end(error.message));
    socket.on('close', () => this.end('the connection was closed by the server'));
  }

  private take(chunk: Buffer): void {
    this.text += chunk.toString('latin1');
    for (let at = this.text.indexOf('\n'); at >= 0; at = this.text.indexOf('\n')) {
      this.line(this.text.slice(0, at).replace(/\r$/, ''));
      this.text = this.text.slice(at + 1);
    }
    if (this.text.length + this.lines.reduce((sum, line) => sum + line.length, 0) > replyMax) this.end('the reply has no end');
  }

  private line(line: string): void {
    const [, code = '', more = '', rest = ''] = /^([2-5]\d\d)([ -]?)(.*)$/.exec(line) ?? [];
    if (code === '') return this.end(`not an SMTP reply: ${line.slice(0, 100)}`);
    this.lines.push(Buffer.from(rest, 'latin1').toString());
    if (more === '-') return;
    const waiter = this.waiting.shift();
    if (waiter) waiter.resolve({ code: Number(code), lines: this.lines });
    else this.end(`the server said ${line.slice(0, 100)}`); // unasked: it is about to close
    this.lines = [];
  }
}

function tlsOptions({ serverName, checkCertificate }: Endpoint) {
  return { ...(serverName !== '' && isIP(serverName) === 0 ? { servername: serverName } : {}), rejectUnauthorized: checkCertificate };
}

function ready(socket: Socket, event: 'connect' | 'secureConnect', signal: AbortSignal, phase: Phase): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: Error) => {
      signal.removeEventListener('abort', abort);
      for (const name of [event, 'error', 'close']) socket.removeAllListeners(name);
      if (!error) return resolve();
      socket.on('error', () => undefined).destroy();
      reject(new SmtpFault(phase, null, error.message, { cause: error }));
    };
    const abort = () => settle(new Error(reasonOf(signal)));
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    socket.once(event, () => settle());
    socket.once('error', settle);
    socket.once('close', () => settle(new Error('the connection was closed by the server')));
  });
}

function reasonOf(signal: AbortSignal): string {
  const reason: unknown = signal.reason;
  return typeof reason === 'object' && reason !== null && 'name' in reason && reason.name === 'TimeoutError' ? 'no answer in time' : 'the attempt was cancelled';
}

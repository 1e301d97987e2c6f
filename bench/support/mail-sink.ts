import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

export type SinkMood = { /** Share of recipients refused for now at their first attempt, and for good. */ later: number; never: number; delayMs: number };

/** A mail server on loopback that takes every mail and counts it by its Message-ID; hostile when it is given a mood. */
export class MailSink {
  /** When the first byte of each mail came, and how often it was taken. */
  readonly firstByteAt = new Map<string, number>();
  readonly copies = new Map<string, number>();
  received = 0;
  unsigned = 0;
  refusedForNow = 0;
  refusedForGood = 0;
  mood: SinkMood | null = null;
  private readonly asked = new Set<string>();
  private readonly server: SMTPServer;

  private constructor() {
    this.server = new SMTPServer({
      disabledCommands: ['AUTH', 'STARTTLS'], disableReverseLookup: true, hideENHANCEDSTATUSCODES: false, logger: false,
      onRcptTo: ({ address }, _session, done) => done(this.refusalOf(address)),
      onData: (stream, _session, done) => {
        const chunks: Buffer[] = [];
        const at = performance.now();
        stream.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => {
          this.count(Buffer.concat(chunks).toString('latin1', 0, 4_000), at);
          if (this.mood) setTimeout(done, this.mood.delayMs);
          else done();
        });
      },
    });
    this.server.on('error', () => undefined);
  }

  static async start(): Promise<MailSink> {
    const sink = new MailSink();
    sink.server.listen(0, '127.0.0.1');
    await once(sink.server.server, 'listening');
    return sink;
  }

  get port(): number {
    return (this.server.server.address() as AddressInfo).port;
  }

  /** Messages taken at least once. */
  get mails(): number {
    return this.copies.size;
  }

  get duplicates(): number {
    return this.received - this.copies.size;
  }

  clear(): void {
    for (const counted of [this.firstByteAt, this.copies, this.asked]) counted.clear();
    this.received = this.unsigned = this.refusedForNow = this.refusedForGood = 0;
  }

  stop(): Promise<void> {
    return new Promise((done) => this.server.close(() => done()));
  }

  private count(head: string, at: number): void {
    const id = /^Message-ID: (\S+)/im.exec(head)?.[1] ?? `nameless-${this.received}`;
    this.received += 1;
    if (!/^DKIM-Signature:/im.test(head)) this.unsigned += 1;
    if (!this.firstByteAt.has(id)) this.firstByteAt.set(id, at);
    this.copies.set(id, (this.copies.get(id) ?? 0) + 1);
  }

  /** By the number in the local part, so that a run can be repeated. */
  private refusalOf(address: string): Error | null {
    if (!this.mood) return null;
    const place = (Number(/\d+/.exec(address)?.[0] ?? 0) * 7_919) % 1_000 / 1_000;
    if (place < this.mood.never) {
      this.refusedForGood += 1;
      return Object.assign(new Error('5.7.1 not wanted'), { responseCode: 550 });
    }
    if (place >= this.mood.never + this.mood.later || this.asked.has(address)) return null;
    this.asked.add(address);
    this.refusedForNow += 1;
    return Object.assign(new Error('4.7.1 greylisted'), { responseCode: 451 });
  }
}

import { randomInt } from 'node:crypto';
import { connect } from 'node:net';
import type { DnsRecord, ZoneTransfer } from '../../dns/ports';
import { byText, grouped, recordTypes, type RRset, type RrType } from '../../dns/rules/rrset';
import { classIn, flags as bits, rcodes, typeNumbers } from '../../dns/rules/wire/codes';
import { isWithin, MalformedDns, wireName, type WireName } from '../../dns/rules/wire/name';
import { readMessage, recordText, type WireMessage } from '../../dns/rules/wire/reader';
import { checkTsig, signMessage, type TsigKey } from '../../dns/rules/wire/tsig';
import { MessageWriter } from '../../dns/rules/wire/writer';

export type AxfrRequest = {
  server: { address: string; port: number };
  domain: string;
  /** Signs the request; then every message of the answer must be signed too. */
  key?: TsigKey;
  /** Of all messages together; more is `too_large`. */
  bytesMax?: number;
  /** For the whole transfer. */
  timeoutMs?: number;
};

const rrTypes: readonly RrType[] = [...recordTypes, 'SOA', 'DS'];
const bytesDefaultMax = 64 * 1024 * 1024;
const timeoutDefaultMs = 10_000;

/**
 * One zone as one server has it, over TCP by AXFR (RFC 5936): its records in canonical text, each once, the SOA first. Never
 * throws: what is not a whole zone is told by `outcome`. Sends to any address: whether it may be asked is the caller's to know.
 */
export function transferZone({ server, domain, key, bytesMax = bytesDefaultMax, timeoutMs = timeoutDefaultMs }: AxfrRequest): Promise<ZoneTransfer> {
  const reading = new ZoneReading(wireName(domain), key);
  return new Promise((resolve) => {
    const socket = connect({ host: server.address, port: server.port });
    let waiting: Buffer = Buffer.alloc(0);
    let received = 0;
    const finish = (transfer: ZoneTransfer): void => {
      clearTimeout(timer);
      socket.removeAllListeners().on('error', () => undefined).destroy();
      resolve(transfer);
    };
    const timer = setTimeout(() => finish({ outcome: 'timeout' }), timeoutMs);
    socket.on('error', () => finish({ outcome: 'timeout' })).on('close', () => finish({ outcome: 'malformed' }));
    socket.on('connect', () => socket.write(framed(reading.request)));
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (received > bytesMax) return finish({ outcome: 'too_large' });
      waiting = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk]);
      for (let end = frameEnd(waiting); end <= waiting.length; end = frameEnd(waiting)) {
        const done = reading.take(waiting.subarray(2, end));
        if (done) return finish(done);
        waiting = waiting.subarray(end);
      }
    });
  });
}

/** What was transferred as RRsets in the order of `effectiveZone`; types our servers do not hold are left out. */
export function rrsetsOf(records: readonly DnsRecord[]): RRset[] {
  const held = records.flatMap((record) => rrTypes.filter((type) => type === record.type).map((type) => ({ ...record, type })));
  const sets = [...grouped(held, ({ name, type }) => `${name} ${type}`).values()].flatMap((set) => set.slice(0, 1).map(({ name, type, ttl }): RRset => ({ name, type, ttl, values: set.map(({ value }) => value).sort(byText) })));
  return sets.sort((a, b) => byText(a.name, b.name) || byText(a.type, b.type));
}

/** Puts the messages of one transfer together and checks each: whose it is, its signature, and that it is of this zone. */
class ZoneReading {
  readonly request: Buffer;
  private readonly id = randomInt(0x10000);
  private readonly records: DnsRecord[] = [];
  private prior: Buffer | undefined;
  private messages = 0;
  private serial: number | null = null;

  constructor(private readonly apex: WireName, private readonly key: TsigKey | undefined) {
    const writer = new MessageWriter(this.id, 0);
    writer.writeQuestion(apex, typeNumbers.AXFR);
    const plain = writer.finish();
    const signed = key ? signMessage(plain, { key, mac: Buffer.alloc(0), nowSeconds: nowSeconds() }, undefined) : { octets: plain, mac: undefined };
    this.request = signed.octets;
    this.prior = signed.mac;
  }

  /** Null: more is to come. */
  take(octets: Buffer): ZoneTransfer | null {
    try {
      const message = readMessage(octets);
      if (message.id !== this.id || (message.flags & (bits.qr | bits.opcode)) !== bits.qr) return { outcome: 'malformed' };
      if (message.rcode !== rcodes.NOERROR) return { outcome: message.rcode === rcodes.SERVFAIL ? 'servfail' : 'refused' };
      return this.isGenuine(message) ? this.read(message) : { outcome: 'malformed' };
    } catch (error) {
      if (error instanceof MalformedDns) return { outcome: 'malformed' };
      throw error;
    }
  }

  /** RFC 8945 §5.3.1: each message is signed over the one before. */
  private isGenuine(message: WireMessage): boolean {
    if (!this.key) return true;
    const { key } = this;
    if (!message.tsig) return false;
    const check = checkTsig(message, message.tsig, { keyOf: (name) => (name === key.name ? key : undefined), nowSeconds: nowSeconds(), ...(this.prior && { priorMac: this.prior }), continues: this.messages > 0 });
    if (!check.ok) return false;
    this.prior = check.context.mac;
    return true;
  }

  /** RFC 5936 §2.2: the SOA stands first and last. */
  private read(message: WireMessage): ZoneTransfer | null {
    this.messages++;
    for (const record of message.answer) {
      const isSoa = record.type === typeNumbers.SOA && record.name === this.apex;
      if (this.serial === null && !isSoa) return { outcome: 'malformed' };
      if (isSoa && this.serial !== null) return { outcome: 'zone', serial: this.serial, records: this.records };
      if (!isWithin(record.name, this.apex) || record.class !== classIn) return { outcome: 'malformed' };
      const read = recordText(message, record);
      if (isSoa) this.serial = Number(read.value.split(' ')[2]);
      this.records.push(read);
    }
    return message.answer.length === 0 ? { outcome: 'malformed' } : null;
  }
}

function frameEnd(waiting: Buffer): number {
  return waiting.length < 2 ? Infinity : 2 + waiting.readUInt16BE(0);
}

function framed(message: Buffer): Buffer {
  return Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message]);
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

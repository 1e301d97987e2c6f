import { createSocket, type Socket } from 'node:dgram';
import { randomInt } from 'node:crypto';
import { isIPv6 } from 'node:net';
import type { Log } from '../../core/log';
import { flags as bits, headerLength, opcodes, typeNumbers } from '../../dns/rules/wire/codes';
import { wireName } from '../../dns/rules/wire/name';
import { MessageWriter } from '../../dns/rules/wire/writer';

export type NotifyTarget = { address: string; port: number };
type Pending = { id: number; target: NotifyTarget; domain: string; tries: number; timer: NodeJS.Timeout | null };

const triesMax = 5;
const firstWaitMs = 1000;

/**
 * Tells secondaries that a zone has changed (RFC 1996): at once, then after 1, 2, 4 and 8 s until they answer. A change
 * while an older one is still being told starts anew.
 */
export class NotifySender {
  private readonly pending = new Map<string, Pending>();
  private readonly sockets = new Map<4 | 6, Socket>();

  constructor(private readonly targets: readonly NotifyTarget[], private readonly log: Log) {}

  announce(domain: string): void {
    for (const target of this.targets) {
      const key = keyOf(target, domain);
      const earlier = this.pending.get(key);
      if (earlier?.timer) clearTimeout(earlier.timer);
      const pending: Pending = { id: randomInt(0x10000), target, domain, tries: 0, timer: null };
      this.pending.set(key, pending);
      this.send(key, pending);
    }
  }

  close(): void {
    for (const { timer } of this.pending.values()) if (timer) clearTimeout(timer);
    this.pending.clear();
    for (const socket of this.sockets.values()) socket.close();
    this.sockets.clear();
  }

  private send(key: string, pending: Pending): void {
    if (pending.tries === triesMax) {
      this.pending.delete(key);
      this.log.warn({ domain: pending.domain, target: pending.target.address }, 'secondary does not answer NOTIFY');
      return;
    }
    const { target } = pending;
    this.socketFor(target).send(notifyMessage(pending.id, pending.domain), target.port, target.address, () => undefined);
    pending.timer = setTimeout(() => this.send(key, pending), firstWaitMs * 2 ** pending.tries++);
    pending.timer.unref();
  }

  private socketFor({ address }: NotifyTarget): Socket {
    const family = isIPv6(address) ? 6 : 4;
    const known = this.sockets.get(family);
    if (known) return known;
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4').unref();
    socket.on('error', (error) => this.log.warn({ err: error }, 'NOTIFY socket failed'));
    socket.on('message', (octets, from) => this.acknowledge(octets, { address: from.address, port: from.port }));
    this.sockets.set(family, socket);
    return socket;
  }

  /** Whatever the answer's rcode: it has been heard (RFC 1996 §4.8). */
  private acknowledge(octets: Buffer, from: NotifyTarget): void {
    if (octets.length < headerLength || (octets.readUInt16BE(2) & (bits.qr | bits.opcode)) !== (bits.qr | (opcodes.notify << 11))) return;
    for (const [key, pending] of this.pending) {
      if (pending.id !== octets.readUInt16BE(0) || keyOf(from, pending.domain) !== key) continue;
      if (pending.timer) clearTimeout(pending.timer);
      this.pending.delete(key);
    }
  }
}

function keyOf(target: NotifyTarget, domain: string): string {
  return `${target.address} ${target.port} ${domain}`;
}

function notifyMessage(id: number, domain: string): Buffer {
  const writer = new MessageWriter(id, (opcodes.notify << 11) | bits.aa);
  writer.writeQuestion(wireName(domain), typeNumbers.SOA);
  return writer.finish();
}

import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

export interface AddressLimitOptions {
  readonly connections: number;
  readonly mailsPerMinute: number;
  /** A relay of our own on this machine brings everybody's reports. */
  readonly exemptLoopback: boolean;
}

export const addressLimitsDefault: AddressLimitOptions = { connections: 20, mailsPerMinute: 300, exemptLoopback: true };
const minuteMs = 60_000;

/** What one client may do at the report intake at once and in a minute; an IPv6 network of 64 bits counts as one. */
export class AddressLimits {
  private readonly open = new Map<string, number>();
  private mails = new Map<string, number>();
  private minute = 0;

  constructor(private readonly options: AddressLimitOptions, private readonly nowMs: () => number = Date.now) {}

  /** False: it holds as many connections as it may. Every true is given back by `left`. */
  entered(address: string): boolean {
    const client = this.clientOf(address);
    if (client === null) return true;
    const count = this.open.get(client) ?? 0;
    if (count >= this.options.connections) return false;
    this.open.set(client, count + 1);
    return true;
  }

  left(address: string): void {
    const client = this.clientOf(address);
    if (client === null) return;
    const count = (this.open.get(client) ?? 1) - 1;
    if (count > 0) this.open.set(client, count);
    else this.open.delete(client);
  }

  /** False: it has brought as many mails in this minute as it may. */
  mayBring(address: string): boolean {
    const client = this.clientOf(address);
    if (client === null) return true;
    const minute = Math.floor(this.nowMs() / minuteMs);
    if (minute !== this.minute) this.mails = new Map();
    this.minute = minute;
    const count = this.mails.get(client) ?? 0;
    if (count >= this.options.mailsPerMinute) return false;
    this.mails.set(client, count + 1);
    return true;
  }

  private clientOf(address: string): string | null {
    if (isIP(address) === 0) return address;
    const parsed = ipaddr.process(address);
    if (this.options.exemptLoopback && parsed.range() === 'loopback') return null;
    return parsed.kind() === 'ipv6' ? Buffer.from(parsed.toByteArray().slice(0, 8)).toString('hex') : parsed.toString();
  }
}

import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { parseIpv6 } from '../../dns/rules/addresses';

export type RateRules = {
  /** Equal answers per second to one network; 0: no limit. */
  perSecond: number;
  /** Networks (`10.0.0.0/8`) and addresses without limit. */
  exempt: readonly string[];
};

export type Verdict = 'send' | 'truncate' | 'drop';
type Bucket = { tokens: number; atMs: number; suppressed: number };

const bucketsMax = 200_000;

/**
 * Response rate limiting: a token bucket per /24 or /56 and equal answer. Of what exceeds it every second one goes out
 * truncated, so that a real client comes back over TCP, and a forged one gets no more than it sent.
 */
export class RateLimiter {
  private young = new Map<string, Bucket>();
  private old = new Map<string, Bucket>();
  private readonly exempt: BlockList;

  constructor(private readonly rules: RateRules, private readonly nowMs: () => number) {
    this.exempt = addressList(rules.exempt);
  }

  /** Whether this answer goes to this address now. */
  judge(address: string, limitKey: string): Verdict {
    const { perSecond } = this.rules;
    if (perSecond === 0) return 'send';
    const bucket = this.bucket(`${networkOf(address)}|${limitKey}`);
    const now = this.nowMs();
    bucket.tokens = Math.min(perSecond, bucket.tokens + ((now - bucket.atMs) * perSecond) / 1000);
    bucket.atMs = now;
    if (bucket.tokens >= 1) {
      bucket.tokens--;
      return 'send';
    }
    if (isListed(this.exempt, address)) return 'send';
    bucket.suppressed++;
    return bucket.suppressed % 2 === 0 ? 'truncate' : 'drop';
  }

  private bucket(key: string): Bucket {
    const known = this.young.get(key) ?? this.old.get(key) ?? { tokens: this.rules.perSecond, atMs: this.nowMs(), suppressed: 0 };
    if (this.young.size >= bucketsMax / 2) {
      this.old = this.young;
      this.young = new Map();
    }
    this.young.set(key, known);
    return known;
  }
}

/** A list of addresses and networks. Errors: TypeError naming the entry that is neither. */
export function addressList(entries: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/');
    if (!isIPv4(address) && !isIPv6(address)) throw new TypeError(`${entry} is no address or network`);
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

export function isListed(list: BlockList, address: string): boolean {
  const bare = plain(address);
  return list.check(bare, isIPv4(bare) ? 'ipv4' : 'ipv6');
}

function networkOf(address: string): string {
  const bare = plain(address);
  if (bare.includes(':')) return Buffer.from((parseIpv6(bare) ?? new Uint8Array(16)).subarray(0, 7)).toString('latin1');
  return bare.slice(0, bare.lastIndexOf('.'));
}

/** IPv4 clients of an IPv6 socket, and link-local ones, in their plain form. */
function plain(address: string): string {
  const bare = address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
  return bare.includes('%') ? bare.slice(0, bare.indexOf('%')) : bare;
}

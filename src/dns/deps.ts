import type { Config } from '../config';
import type { Clock } from '../core/clock';
import type { Cursors } from '../core/cursor';
import type { Database } from '../db/client';
import type { DnsBackend, DnsResolver, ZoneLookup } from './ports';
import type { Platform } from './rules/platform';

/** What the operations of zones and records need. */
export interface DnsDeps {
  readonly db: Database;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly limiter: { take(rule: { name: string; limit: number; periodSeconds: number; burst?: number }, key: string): Promise<unknown> };
  readonly dnsPlatform: Platform;
  readonly dnsResolver: DnsResolver;
  readonly dnsBackend: DnsBackend;
  readonly config: Pick<Config, 'DNS_ZONE_PURGE_DAYS' | 'DNS_RECORD_PURGE_DAYS' | 'DNS_PENDING_DAYS' | 'DNS_MOVED_DAYS'>;
  readonly dnsLookup: ZoneLookup;
}

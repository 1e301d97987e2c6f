import type { Log } from '../../core/log';
import type { ApplyOutcome, ZoneChangeSet, ZoneFeed } from '../../dns/ports';
import type { RRset } from '../../dns/rules/rrset';
import { startDnsServer, type DnsServer } from '../../edge/dns/server';

export type ServedZone = { domain: string; version: number; rrsets: RRset[] };

/** A name server of its own, authoritative for what it is given; the same server code as the platform's. */
export type Authority = { readonly address: string; readonly port: number; put(zone: ServedZone): void; drop(domain: string, version: number): void; close(): Promise<void> };

/** It answers. Port 0: any. Errors: the address is taken, or is none of this machine. */
export async function startAuthority(at: { host: string; port: number }, zones: readonly ServedZone[], log: Log): Promise<Authority> {
  const feed = new GivenZones(zones);
  const server = await startDnsServer({ listen: [at], feed, log, rateLimit: { perSecond: 0, exempt: [] }, transfer: { keys: [], allow: [] }, notify: [], nowMs: Date.now });
  return {
    address: at.host, port: portOf(server) ?? at.port,
    put: (zone) => void feed.push(changesOf(zone, 'full')),
    drop: (domain, version) => void feed.push(changesOf({ domain, version, rrsets: [] }, 'remove')),
    close: () => server.close(),
  };
}

function portOf({ addresses: [first] }: DnsServer): number | undefined {
  return first?.port;
}

/** Zones that come from this process instead of a database. */
class GivenZones implements ZoneFeed {
  private apply: (changes: ZoneChangeSet) => ApplyOutcome = () => 'stale';

  constructor(private readonly first: readonly ServedZone[]) {}

  start(apply: (changes: ZoneChangeSet) => ApplyOutcome): Promise<void> {
    this.apply = apply;
    for (const zone of this.first) apply(changesOf(zone, 'full'));
    return Promise.resolve();
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  push(changes: ZoneChangeSet): ApplyOutcome {
    return this.apply(changes);
  }
}

function changesOf({ domain, version, rrsets }: ServedZone, kind: 'full' | 'remove'): ZoneChangeSet {
  return { zoneId: null, domain, version, fromVersion: null, serial: version, kind, replace: rrsets, remove: [] };
}

import { setTimeout as pause } from 'node:timers/promises';
import type { DnsBackend, ServedZone, ServerState, ZoneChangeSet, ZoneTransfer } from '../../dns/ports';
import { rrsetsOf } from './axfr-client';

export type EmbeddedOptions = {
  /** The servers are told once more that the zone has changed. */
  notify(zoneId: string): Promise<void>;
  /** What each live server has acknowledged of a zone. */
  readServers(zoneId: string): Promise<ServerState[]>;
  /** Our servers where they are asked by ourselves. */
  servers: readonly { address: string; port: number }[];
  transfer(server: { address: string; port: number }, domain: string): Promise<ZoneTransfer>;
  /** How long an answer waits for servers that are behind. */
  waitMs: number;
};

const pollMs = 50;
const renotifyMs = 1_000;

/** Our own servers: they follow the database, and are told once more of what they may have missed. */
export class EmbeddedBackend implements DnsBackend {
  readonly pushed = false;

  constructor(private readonly options: EmbeddedOptions) {}

  /** Waits until every live server answers with the version, or a newer one, or for as long as an answer may take. */
  async applyChangeSet(changes: ZoneChangeSet): Promise<{ appliedVersion: number; servers: ServerState[] }> {
    const { zoneId, version, kind } = changes;
    const isThere = (server: ServerState): boolean => (kind === 'remove' ? server.version === null : (server.version ?? 0) >= version);
    const end = Date.now() + this.options.waitMs;
    for (let toldAt = 0; ; await pause(pollMs)) {
      const servers = zoneId === null ? [] : await this.options.readServers(zoneId);
      if ((kind === 'remove' || servers.length > 0) && servers.every(isThere)) return { appliedVersion: version, servers };
      if (Date.now() >= end) return { appliedVersion: servers.length === 0 ? 0 : Math.min(...servers.map((server) => server.version ?? 0), version), servers };
      if (zoneId !== null && Date.now() - toldAt >= renotifyMs) {
        await this.options.notify(zoneId);
        toldAt = Date.now();
      }
    }
  }

  /** By zone transfer. A server that does not answer is left out; null when all that answer refuse. Errors: none answers. */
  async readZone(domain: string): Promise<ServedZone[] | null> {
    const asked = await Promise.all(this.options.servers.map(async (server) => ({ name: `${server.address}:${server.port}`, zone: await this.options.transfer(server, domain) })));
    const answered = asked.filter(({ zone }) => zone.outcome === 'zone' || zone.outcome === 'refused');
    if (answered.length === 0) throw new Error(`No server transfers ${domain}: ${asked.map(({ zone }) => zone.outcome).join(', ')}.`);
    const served = answered.flatMap(({ name, zone }) => (zone.outcome === 'zone' ? [{ server: name, serial: zone.serial, rrsets: rrsetsOf(zone.records) }] : []));
    return served.length > 0 ? served : null;
  }

  async health(): Promise<{ ok: boolean; lagMs: number | null; detail: string }> {
    const states = await this.options.readServers('');
    return { ok: states.length > 0, lagMs: null, detail: `${states.length} name servers are up` };
  }
}

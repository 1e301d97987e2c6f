import type { DnsBackend, ServedZone, ServerState, ZoneChangeSet } from '../../dns/ports';
import { byText, type RRset } from '../../dns/rules/rrset';
import { decideStep, versionHeld } from './held-version';

type MemoryZone = { zoneId: ZoneChangeSet['zoneId']; version: number; serial: number; sets: Map<string, RRset> };

/** A push backend for tests, in the memory of the process. */
export class MemoryBackend implements DnsBackend {
  readonly pushed = true;
  private readonly zones = new Map<string, MemoryZone>();

  async applyChangeSet(changes: ZoneChangeSet): Promise<{ appliedVersion: number; servers: ServerState[] }> {
    const { zoneId, domain, version, serial, kind } = changes;
    const present = this.zones.get(domain) ?? null;
    const step = decideStep(present, changes);
    if (step === 'ignored') return this.stateOf(domain, versionHeld(present, zoneId), changes);
    if (step === 'take' && kind === 'remove') this.zones.delete(domain);
    else if (step === 'take') {
      const sets = new Map(kind === 'full' ? [] : present?.sets);
      for (const { name, type } of changes.remove) sets.delete(`${name} ${type}`);
      for (const set of changes.replace) sets.set(`${set.name} ${set.type}`, structuredClone(set));
      this.zones.set(domain, { zoneId, version, serial, sets });
    }
    return this.stateOf(domain, version, changes);
  }

  async readZone(domain: string): Promise<ServedZone[] | null> {
    const zone = this.zones.get(domain);
    if (!zone) return null;
    const rrsets = [...zone.sets.values()].sort((a, b) => byText(a.name, b.name) || byText(a.type, b.type));
    return [{ server: 'memory', serial: zone.serial, rrsets: structuredClone(rrsets) }];
  }

  async health(): Promise<{ ok: boolean; lagMs: number | null; detail: string }> {
    return { ok: true, lagMs: 0, detail: `${this.zones.size} zones in memory` };
  }

  private stateOf(domain: string, appliedVersion: number, { version }: ZoneChangeSet) {
    const zone = this.zones.get(domain);
    const inSync = appliedVersion === version;
    return { appliedVersion, servers: [{ name: 'memory', version: zone ? appliedVersion : null, serial: zone?.serial ?? null, inSync, lagMs: inSync ? 0 : null }] };
  }
}

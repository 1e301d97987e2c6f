import { z } from 'zod';
import { AppError } from '../../core/errors';
import type { DnsBackend, ServedZone, ServerState, ZoneChangeSet } from '../../dns/ports';
import { compareRRsets } from '../../dns/rules/drift';
import { decideStep, versionHeld, type Held } from './held-version';
import { powerdnsSet, removing, replacing, rrsetsFrom } from './powerdns-records';

export type PowerdnsOptions = { url: string; apiKey: string; serverId: string; timeoutMs: number };

const zoneAnswer = z.object({ serial: z.number(), rrsets: z.array(powerdnsSet) });
const metadataAnswer = z.object({ metadata: z.array(z.string()) });
const serverAnswer = z.object({ version: z.string() });
/** Where the zone's id and version are kept: PowerDNS counts the serial by itself. */
const versionKind = 'X-HOLDFAST-VERSION';
/** Beyond these the whole zone is asked for at once. */
const namesAskedMax = 8;

/**
 * PowerDNS over its HTTP API 4.7. A step is one PATCH and then the version beside it: what is lost between the two is sent
 * again and changes nothing. Zones are Native; the serial goes up by one with each change and is not compared.
 */
export class PowerdnsBackend implements DnsBackend {
  readonly pushed = true;

  constructor(private readonly options: PowerdnsOptions) {}

  async applyChangeSet(changes: ZoneChangeSet): Promise<{ appliedVersion: number; servers: ServerState[] }> {
    const { domain, kind, version } = changes;
    const held = await this.held(domain);
    const step = decideStep(held, changes);
    if (step === 'ignored') return this.stateOf(versionHeld(held, changes.zoneId), changes);
    if (step === 'take') {
      if (kind === 'remove') await this.request('DELETE', zonePath(domain));
      else if (kind === 'diff') await this.patch(changes, [...(await this.presentOf(changes)).map(removing), ...changes.replace.map(replacing)]);
      else await this.makeEqual(changes, held !== null);
      if (kind !== 'remove') await this.keepVersion(changes);
    }
    return this.stateOf(version, changes);
  }

  async readZone(domain: string): Promise<ServedZone[] | null> {
    const zone = await this.zone(domain);
    return zone && [{ server: this.options.serverId, serial: zone.serial, rrsets: rrsetsFrom(zone.rrsets) }];
  }

  async health(): Promise<{ ok: boolean; lagMs: number | null; detail: string }> {
    try {
      const answer = serverAnswer.parse(await this.request('GET', ''));
      return { ok: true, lagMs: null, detail: `PowerDNS ${answer.version}` };
    } catch (error) {
      return { ok: false, lagMs: null, detail: error instanceof Error ? error.message : 'PowerDNS does not answer.' };
    }
  }

  /** The zone answers exactly what is wanted; only what differs is sent. */
  private async makeEqual(changes: ZoneChangeSet, exists: boolean): Promise<void> {
    const present = exists ? await this.zone(changes.domain) : null;
    if (!present) {
      await this.request('POST', '/zones', {
        name: `${changes.domain}.`, kind: 'Native', soa_edit_api: 'INCREASE', nameservers: [], rrsets: changes.replace.map(replacing).map(({ changetype: _, ...set }) => set),
      });
      return;
    }
    const { create, update, delete: gone } = compareRRsets(changes.replace, rrsetsFrom(present.rrsets));
    if (create.length + update.length + gone.length === 0) return;
    const soa = changes.replace.filter(({ type }) => type === 'SOA');
    await this.patch(changes, [...gone.map(removing), ...[...create, ...update, ...soa].map(replacing)]);
  }

  /** What of the RRsets to remove is there: PowerDNS refuses to remove an absent CNAME beside others, and others beside a CNAME. */
  private async presentOf({ domain, remove }: ZoneChangeSet): Promise<ZoneChangeSet['remove']> {
    const names = [...new Set(remove.map(({ name }) => name))];
    const queries = names.length > namesAskedMax ? [''] : names.map((name) => `?rrset_name=${encodeURIComponent(`${name}.`)}`);
    const zones = await Promise.all(queries.map((query) => this.zone(domain, query)));
    const present = new Set(zones.flatMap((zone) => rrsetsFrom(zone?.rrsets ?? [], { disabled: true })).map(({ name, type }) => `${name} ${type}`));
    return remove.filter(({ name, type }) => present.has(`${name} ${type}`));
  }

  private async patch({ domain }: ZoneChangeSet, rrsets: readonly object[]): Promise<void> {
    await this.request('PATCH', zonePath(domain), { rrsets });
  }

  private async zone(domain: string, query = ''): Promise<z.infer<typeof zoneAnswer> | null> {
    const answer = await this.request('GET', `${zonePath(domain)}${query}`, undefined, { absent: true });
    return answer === null ? null : zoneAnswer.parse(answer);
  }

  /** Null: there is no such zone. */
  private async held(domain: string): Promise<Held | null> {
    const answer = await this.request('GET', `${zonePath(domain)}/metadata/${versionKind}`, undefined, { absent: true });
    if (answer === null) return await this.zone(domain) && { zoneId: null, version: 0 };
    const [, zoneId, version] = /^(\S+) (\d+)$/.exec(metadataAnswer.parse(answer).metadata[0] ?? '') ?? [];
    return { zoneId: zoneId ?? null, version: Number(version ?? 0) };
  }

  private async keepVersion({ domain, zoneId, version }: ZoneChangeSet): Promise<void> {
    await this.request('PUT', `${zonePath(domain)}/metadata/${versionKind}`, { kind: versionKind, metadata: [`${zoneId ?? '-'} ${version}`] });
  }

  private stateOf(appliedVersion: number, { version, serial }: ZoneChangeSet) {
    const inSync = appliedVersion === version;
    return { appliedVersion, servers: [{ name: this.options.serverId, version: appliedVersion || null, serial: inSync ? serial : null, inSync, lagMs: inSync ? 0 : null }] };
  }

  /** The parsed answer, null for none; with `absent`, null also for what is not there. Errors: AppError for a 4xx; any other fault may pass. */
  private async request(method: string, path: string, body?: object, { absent = false } = {}): Promise<unknown> {
    const { url, apiKey, serverId, timeoutMs } = this.options;
    const response = await fetch(`${url}/api/v1/servers/${encodeURIComponent(serverId)}${path}`, {
      method, headers: { 'X-API-Key': apiKey, 'Content-Type': 'application/json' }, signal: AbortSignal.timeout(timeoutMs), ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.ok) return text === '' ? null : JSON.parse(text);
    if (response.status === 404 && (absent || method === 'DELETE')) return null;
    const cause = new Error(`PowerDNS: ${method} ${path} is ${response.status}: ${text.slice(0, 500)}`);
    const passing = response.status >= 500 || response.status === 408 || response.status === 429;
    throw passing ? cause : new AppError('backend_error', `The DNS backend refuses the zone (${response.status}).`, {}, { cause });
  }
}

function zonePath(domain: string): string {
  return `/zones/${encodeURIComponent(`${domain}.`)}`;
}

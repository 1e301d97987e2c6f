import { MockActivityEnvironment } from '@temporalio/testing';
import { createDnsActivities } from '../../activities/dns';
import { activityInterceptor } from '../../activities/steps';
import { MemoryBackend } from '../../src/adapters/dns-backend/memory';
import type { DnsBackend, ZoneChangeSet } from '../../src/dns/ports';
import { registerPushBackend } from '../../src/dns/store/sync';
import { silent } from '../support/accepted-work';
import { withApi } from '../support/api';
import { withTemporal } from '../support/temporal';
import { createTenant } from '../support/tenant';
import { torture } from '../support/torture';
import { withWorkflowLab } from '../support/workflow-lab';

const api = withApi();
const server = withTemporal();
const lab = withWorkflowLab(server, { interceptor: () => activityInterceptor({ database: api.deps.db, log: silent }) });
const rows = async (sql: string, ...values: unknown[]): Promise<Record<string, unknown>[]> => (await api.deps.db.pool.query(sql, values)).rows;
beforeAll(() => registerPushBackend(api.deps.db.prisma, 'push'));

let count = 0;
async function zoneWith(addresses: readonly string[]) {
  const domain = `push-${++count}.test`;
  const tenant = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  const ask = (method: string, path: string, json?: unknown) => api.ask(method, `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}/dns/zones${path}`, { headers: { cookie: tenant.cookies.owner }, ...(json === undefined ? {} : { json }) });
  const { zone } = (await ask('POST', '', { domain, mode: 'full_hosting' })).body;
  const write = (value: string) => ask('POST', `/${zone.id}/records`, { type: 'A', name: 'www', value });
  for (const value of addresses) await write(value);
  return { id: String(zone.id), domain, ask, write };
}
const addressesAt = async (backend: DnsBackend, domain: string) => (await backend.readZone(domain))?.[0]?.rrsets.find(({ type }) => type === 'A')?.values ?? null;
const appliedOf = async (zoneId: string) => (await rows('select applied_version as applied, version, sync_lease_until is null as free, sync_error_code as code from dns_zone where id = $1', zoneId))[0];

test('syncZone of a push backend, failed, repeated or cancelled at its step: published, or published by the next run', async () => {
  const steps = await torture(lab, {
    workflow: 'syncZone', withoutEnd: ['markSyncFailed'],
    async begin() {
      const backend = new MemoryBackend();
      const { ensureZonePublished, markSyncFailed } = createDnsActivities({ ...api.deps, dnsBackend: backend });
      const zone = await zoneWith(['192.0.2.1']);
      await new MockActivityEnvironment().run(ensureZonePublished, { zoneId: zone.id });
      await zone.write('192.0.2.2');
      return {
        input: { zoneId: zone.id }, activities: { ensureZonePublished, markSyncFailed },
        async verify(end, { torment }) {
          if (end.end === 'completed' && !torment?.startsWith('refused')) expect(await addressesAt(backend, zone.domain)).toEqual(['192.0.2.1', '192.0.2.2']);
          await rows(`update dns_zone set sync_reported_at = null where id = $1`, zone.id);
          await new MockActivityEnvironment().run(ensureZonePublished, { zoneId: zone.id });
          expect(await addressesAt(backend, zone.domain)).toEqual(['192.0.2.1', '192.0.2.2']);
          const state = await appliedOf(zone.id);
          expect(state).toEqual({ applied: state?.['version'], version: state?.['version'], free: true, code: null });
        },
      };
    },
  });
  expect(steps).toEqual(['ensureZonePublished']);
}, 120_000);

/** Dies before or after its effect at each call, once. */
class DyingBackend implements DnsBackend {
  readonly pushed = true;
  calls = 0;
  constructor(readonly real: MemoryBackend, private readonly dies: { at: number; after: boolean }) {}

  async applyChangeSet(changes: ZoneChangeSet) {
    const due = ++this.calls === this.dies.at;
    if (due && !this.dies.after) throw new Error('killed before the backend had it');
    const applied = await this.real.applyChangeSet(changes);
    if (due) throw new Error('killed before anybody knew');
    return applied;
  }

  readZone(domain: string) {
    if (++this.calls === this.dies.at) return Promise.reject(new Error('killed while it looked'));
    return this.real.readZone(domain);
  }

  health() {
    return this.real.health();
  }
}

test('killed at any call of the backend, before or after its effect, the next attempt finds its way: first publication, steps, deletion and restore', async () => {
  for (let at = 1, reached = true; reached; at++) {
    reached = false;
    for (const after of [false, true]) {
      const backend = new DyingBackend(new MemoryBackend(), { at, after });
      const { ensureZonePublished } = createDnsActivities({ ...api.deps, dnsBackend: backend });
      const zone = await zoneWith(['192.0.2.1']);
      const publish = async () => {
        const attempt = () => new MockActivityEnvironment().run(ensureZonePublished, { zoneId: zone.id });
        await attempt().catch(attempt);
      };
      await publish();
      await zone.write('192.0.2.2');
      await zone.write('192.0.2.3');
      await publish();
      expect(await addressesAt(backend.real, zone.domain)).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3']);
      await zone.ask('DELETE', `/${zone.id}`);
      await publish();
      expect(await backend.real.readZone(zone.domain)).toBeNull();
      await zone.ask('POST', `/${zone.id}/restore`);
      await publish();
      expect(await addressesAt(backend.real, zone.domain)).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3']);
      const state = await appliedOf(zone.id);
      expect(state).toEqual({ applied: state?.['version'], version: state?.['version'], free: true, code: null });
      reached ||= backend.calls >= at;
    }
  }
}, 120_000);

test('two writers and two publishers at once: what is applied never goes back, and ends at the last version', async () => {
  const backend = new MemoryBackend();
  const { ensureZonePublished } = createDnsActivities({ ...api.deps, dnsBackend: backend });
  const zone = await zoneWith(['192.0.2.1']);
  const seen: number[] = [];
  const real = backend.applyChangeSet.bind(backend);
  backend.applyChangeSet = async (changes) => {
    const applied = await real(changes);
    seen.push(applied.appliedVersion);
    return applied;
  };
  const publish = () => new MockActivityEnvironment().run(ensureZonePublished, { zoneId: zone.id });
  await Promise.all([...Array.from({ length: 10 }, (_, i) => zone.write(`198.51.100.${i + 1}`)), publish(), publish()]);
  await rows(`update dns_zone set sync_reported_at = null where id = $1`, zone.id);
  await publish();
  const state = await appliedOf(zone.id);
  expect(state).toEqual({ applied: state?.['version'], version: state?.['version'], free: true, code: null });
  expect(await addressesAt(backend, zone.domain)).toHaveLength(11);
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
}, 60_000);

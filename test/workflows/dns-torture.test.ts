import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createDnsActivities } from '../../activities/dns';
import { TableResolver } from '../../src/adapters/dns-resolver/table';
import { activityInterceptor } from '../../activities/steps';
import { inTransaction } from '../../src/db/transaction';
import { requestSync } from '../../src/dns/sync';
import { openPurgeOperation } from '../../src/dns/retention';
import { silent } from '../support/accepted-work';
import { delegatedTo } from '../support/dns-time';
import { withApi } from '../support/api';
import { withTemporal } from '../support/temporal';
import { createTenant } from '../support/tenant';
import { torture } from '../support/torture';
import { withWorkflowLab, type Activities } from '../support/workflow-lab';

const api = withApi();
const server = withTemporal();
const lab = withWorkflowLab(server, { interceptor: () => activityInterceptor({ database: api.deps.db, log: silent }) });
const rows = async (sql: string, ...values: unknown[]): Promise<Record<string, unknown>[]> => (await api.deps.db.pool.query(sql, values)).rows;
const states = async (zoneId: string, kind: string) => (await rows('select state from operation where resource_id = $1 and kind = $2 order by created_at', zoneId, kind)).map(({ state }) => state);

async function zoneOf(domain: string) {
  const tenant = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  const ask = (method: string, path: string, json?: unknown) => api.ask(method, `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}/dns/zones${path}`, { headers: { cookie: tenant.cookies.owner }, ...(json === undefined ? {} : { json }) });
  const { zone } = (await ask('POST', '', { domain, mode: 'full_hosting' })).body;
  return { tenant, ask, id: String(zone.id), nameservers: zone.nameservers, ref: { id: zone.id, domain, orgId: tenant.orgId, projectId: tenant.projectId } };
}

let count = 0;
const domain = () => `torture-${++count}.test`;

test('purgeZone failed, repeated or cancelled at any step: the zone is purged whole, or can be purged again', async () => {
  const steps = await torture(lab, {
    workflow: 'purgeZone',
    async begin() {
      const zone = await zoneOf(domain());
      await zone.ask('POST', `/${zone.id}/records`, { type: 'A', name: 'www', value: '192.0.2.1' });
      await zone.ask('DELETE', `/${zone.id}`);
      await rows(`update dns_zone set purge_at = now() - interval '1 second' where id = $1`, zone.id);
      const operation = await inTransaction(api.deps.db, (tx) => openPurgeOperation(tx, zone.ref));
      const { ensureZoneRemoved, markZonePurged } = createDnsActivities(api.deps);
      return {
        input: { zoneId: zone.id, operationId: operation.id }, activities: { ensureZoneRemoved, markZonePurged },
        async verify(end) {
          const [zoneRow] = await rows('select purged_at is not null as purged, deleted_at is not null as deleted, (select count(*)::int from dns_record where zone_id = $1) as records from dns_zone where id = $1', zone.id);
          const [state] = await states(zone.id, 'dns.purge');
          if (end.end === 'completed' || zoneRow?.['purged'] === true) expect({ ...zoneRow, state }).toEqual({ purged: true, deleted: true, records: 0, state: 'succeeded' });
          else expect({ deleted: zoneRow?.['deleted'], open: ['pending', 'running'].includes(String(state)) }).toEqual({ deleted: true, open: true });
          for (const activity of [ensureZoneRemoved, markZonePurged]) await new MockActivityEnvironment().run(activity, { zoneId: zone.id });
          expect(await states(zone.id, 'dns.purge')).toEqual(['succeeded']);
          expect((await rows('select count(*)::int as n from audit_entry where target_id = $1 and action = $2', zone.id, 'purgeDnsZone'))[0]).toEqual({ n: 1 });
        },
      };
    },
  });
  expect(steps).toEqual(['ensureZoneRemoved', 'markZonePurged']);
}, 120_000);

test('syncZone failed, repeated or cancelled at any step: published or written down as failed, and nobody waits for ever', async () => {
  const steps = await torture(lab, {
    workflow: 'syncZone',
    withoutEnd: ['markSyncFailed'],
    async begin() {
      const zone = await zoneOf(domain());
      await rows(`insert into dns_server (id, addresses) values ($1, '{}')`, zone.id);
      await rows(`insert into dns_ack (server_id, zone_id, version) select $1, id, version from dns_zone where id = $1`, zone.id);
      await rows(`update dns_server set heartbeat_at = now() - interval '1 hour' where id <> $1`, zone.id);
      const operation = await inTransaction(api.deps.db, (tx) => requestSync(tx, { caller: callerOf(zone.tenant), zoneId: zone.id, cause: { actor: { kind: 'system', id: null, displayName: null }, action: 'test', requestId: null, ip: null } }));
      const { ensureZonePublished, markSyncFailed } = createDnsActivities(api.deps);
      return {
        input: { zoneId: zone.id, operationId: operation.id }, activities: { ensureZonePublished, markSyncFailed },
        async verify(end, { torment }) {
          const [state] = await states(zone.id, 'dns.sync');
          const [zoneRow] = await rows('select sync_error_code as code, version from dns_zone where id = $1', zone.id);
          if (end.end === 'cancelled') expect(['running', 'pending', 'succeeded']).toContain(state);
          else if (torment === 'refused before its effect' || torment === 'refused, every undo run twice') expect({ state, code: zoneRow?.['code'] }).toEqual({ state: 'failed', code: 'backend_error' });
          else if (torment !== 'refused after its effect') expect({ state, code: zoneRow?.['code'] }).toEqual({ state: 'succeeded', code: null });
          await rows(`update dns_zone set sync_reported_at = now() - interval '1 minute' where id = $1`, zone.id);
          await new MockActivityEnvironment().run(ensureZonePublished, { zoneId: zone.id });
          expect((await rows('select sync_error_code as code from dns_zone where id = $1', zone.id))[0]).toEqual({ code: null });
          expect((await states(zone.id, 'dns.sync')).filter((one) => one === 'running' || one === 'pending')).toEqual([]);
        },
      };
    },
  });
  expect(steps).toEqual(['ensureZonePublished']);
}, 120_000);

test('verifyZone failed, repeated or cancelled at any check: the verdict is one, its operation closed, and the run ends with the zone', async () => {
  const steps = await torture(lab, {
    workflow: 'verifyZone',
    withoutEnd: ['ensureZoneChecked'], // refused it waits five minutes: proven below
    async begin() {
      const name = domain();
      const zone = await zoneOf(name);
      const dns = new TableResolver();
      dns.setDelegation(name, delegatedTo(...zone.nameservers));
      const { ensureZoneChecked } = createDnsActivities({ ...api.deps, dnsResolver: dns });
      let checked = false;
      const activities: Activities = {
        /** The second turn finds the zone deleted. */
        async ensureZoneChecked(input: { zoneId: string }) {
          if (checked) await zone.ask('DELETE', `/${zone.id}`);
          const { delayMs, status } = await ensureZoneChecked(input);
          checked = true;
          return { delayMs: delayMs === null ? null : 5, status };
        },
      };
      return {
        input: { zoneId: zone.id }, activities,
        async verify(end) {
          const [zoneRow] = await rows('select status, check_attempt as attempt from dns_zone where id = $1', zone.id);
          expect(zoneRow).toEqual({ status: 'active', attempt: 1 });
          expect(await states(zone.id, 'dns.verify')).toEqual(['succeeded']);
          expect(['completed', 'cancelled']).toContain(end.end);
        },
      };
    },
  });
  expect(steps).toEqual(['ensureZoneChecked', 'ensureZoneChecked']);
}, 120_000);

test('a check refused for good is done again when asked for', async () => {
  const zone = await zoneOf(domain());
  const dns = new TableResolver();
  dns.setDelegation(zone.ref.domain, delegatedTo(...zone.nameservers));
  const { ensureZoneChecked } = createDnsActivities({ ...api.deps, dnsResolver: dns });
  const workflowId = `lab/refused-${process.pid}`;
  const handle = () => server.environment.client.workflow.getHandle(workflowId);
  const activities: Activities = {
    async ensureZoneChecked(input: { zoneId: string }) {
      const { status } = await ensureZoneChecked(input);
      return { delayMs: null, status };
    },
  };
  const running = lab.run({
    workflow: 'verifyZone', input: { zoneId: zone.id }, activities, workflowId,
    interfere: async ({ index }, run) => {
      if (index === 0) throw ApplicationFailure.nonRetryable('refused', 'backend_error');
      return run();
    },
  });
  for (let refused = false; !refused;) refused = await handle().query<{ checks: number }>('state').then(({ checks }) => checks >= 1, () => false);
  await handle().signal('recheck');
  expect(await running).toMatchObject({ end: 'completed' });
  expect((await rows('select status from dns_zone where id = $1', zone.id))[0]).toEqual({ status: 'active' });
}, 60_000);

function callerOf({ orgId, projectId, orgSlug, projectSlug, userIds }: Awaited<ReturnType<typeof zoneOf>>['tenant']) {
  return {
    kind: 'user' as const, userId: userIds.owner, sessionId: 'ses_x' as const, email: 'a@b.test', displayName: 'a', freshUntil: null, role: 'owner' as const,
    org: { id: orgId, slug: orgSlug, displayName: 'x', status: 'active' as const }, project: { id: projectId, slug: projectSlug, displayName: 'x', status: 'active' as const },
  };
}

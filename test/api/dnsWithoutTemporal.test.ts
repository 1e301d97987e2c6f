import { createListener } from '../../src/db/listen';
import { inTransaction } from '../../src/db/transaction';
import { dnsReconcileRule } from '../../src/dns/reconcile';
import { endSync } from '../../src/dns/service';
import { ensureSynced } from '../../src/dns/sync';
import { startRelay } from '../../src/operations/relay';
import { silent, temporalOf, testMetrics } from '../support/accepted-work';
import { withDnsWorld } from '../support/dns-world';
import { withTemporal } from '../support/temporal';
import { until } from '../support/until';

/** The API's own Temporal never answers; the relay's does, once it is started. */
const world = withDnsWorld(54);
const server = withTemporal();

test('verify and sync answer 200 with the full report while Temporal is down; the relay signals their workflows later', async () => {
  const zone = await world.zone('alone.test');
  world.registry.delegate('alone.test', zone.nameservers);
  const verified = await world.ask('POST', `/dns/zones/${zone.id}/verify`);
  expect(verified).toMatchObject({ status: 200, body: {
    zone: { status: 'active' }, operation: { kind: 'dns.verify', state: 'succeeded' },
    verification: { result: 'verified', cached: false, delegation: { parentZone: 'test', nameservers: zone.nameservers.toSorted(), consistent: true, source: 'network' }, problems: [] },
  } });
  const synced = await world.ask('POST', `/dns/zones/${zone.id}/sync`, { json: { force: true } });
  expect(synced).toMatchObject({ status: 200, body: { sync: { dryRun: false, versionAfter: synced.body.zone.version }, operation: { kind: 'dns.sync', state: 'succeeded' } } });
  const signals = async (workflowId: string): Promise<string[]> => {
    const { events } = await server.environment.client.workflow.getHandle(workflowId).fetchHistory();
    return (events ?? []).flatMap(({ workflowExecutionSignaledEventAttributes: event }) => event?.signalName ?? []);
  };
  for (const id of [`dns-verify/${zone.id}`, `dns-sync/${zone.id}`]) await expect(signals(id)).rejects.toThrow(/not found/);
  const temporal = temporalOf(server);
  const listener = createListener({ url: world.api.deps.config.DATABASE_URL, process: 'test', log: silent });
  const relay = startRelay({ database: world.api.deps.db, temporal, listener, log: silent, metrics: testMetrics() });
  try {
    await until(() => signals(`dns-verify/${zone.id}`).then((names) => names.includes('recheck'), () => false), 'recheck');
    await until(() => signals(`dns-sync/${zone.id}`).then((names) => names.includes('requested'), () => false), 'requested');
  } finally {
    await relay.stop();
    await listener.close();
    await temporal.close();
  }
}, 60_000);

test('a publication that was given up is begun anew by reconcile, until it succeeds', async () => {
  const zone = await world.zone('given-up.test');
  const reopened = () => inTransaction(world.api.deps.db, async (tx) => (await dnsReconcileRule.reopen?.(tx, 50) ?? []).filter(({ resourceId }) => resourceId === zone.id).map(({ kind, signal }) => `${kind} ${signal}`));
  expect(await reopened()).toEqual([]);
  await endSync(world.api.deps, zone.id, { code: 'backend_error', message: 'no' });
  expect([await reopened(), await reopened()]).toEqual([['dns.sync requested'], []]);
  await ensureSynced(world.api.deps, zone.id, { budgetMs: 5_000 });
  expect(await reopened()).toEqual([]);
  expect((await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone.sync).toMatchObject({ status: 'synced', lastError: null });
}, 30_000);

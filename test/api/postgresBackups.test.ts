import { newId } from '../../src/core/ids';
import { backupAcceptedAnswer, listBackupsAnswer } from '../../src/postgres/schemas/backups';
import { createdService, read, withPostgresApi, type Answer, type Ask } from '../support/postgres-api';
import { setStatus } from '../support/postgres-rows';
import { createTenant, type Tenant } from '../support/tenant';

const api = withPostgresApi();
const at = (serviceId: string) => `/postgres/services/${serviceId}`;
const listed = ({ body }: Answer) => listBackupsAnswer.parse(body).backups;
const backupOf = ({ body }: Answer) => backupAcceptedAnswer.parse(body);

async function service(status = 'available', plan = 'starter'): Promise<{ tenant: Tenant; ask: Ask; serviceId: string }> {
  const tenant = await createTenant(api.database, api.config.AUTH_SECRET);
  const ask = api.askFor(tenant);
  const { serviceId, operationId } = await createdService(ask, { plan });
  await setStatus(api.database, serviceId, status);
  await api.database.pool.query(`update operation set state = 'succeeded', finished_at = now() where id = $1`, [operationId]);
  return { tenant, ask, serviceId };
}

/** A complete backup from `from` minutes ago, as its workflow leaves it. */
async function complete(serviceId: string, from: number, bytes = 40_000_000): Promise<string> {
  const id = newId('bak');
  await api.database.pool.query(`insert into postgres_backup (id, service_id, kind, status, size_bytes, system_id, started_at, completed_at, restore_from, expires_at)
    values ($1, $2, 'scheduled', 'complete', $4, '1', now() - $3::int * interval '1 minute', now() - $3::int * interval '1 minute', now() - $3::int * interval '1 minute', now() + interval '3 days')`, [id, serviceId, from, bytes]);
  await api.database.pool.query(`update postgres_service s set archived_until = now() - interval '1 minute', earliest_restore_at = (select min(restore_from) from postgres_backup where service_id = s.id) where id = $1`, [serviceId]);
  return id;
}

const windowOf = async (ask: Ask, serviceId: string) => read.service(await ask('GET', at(serviceId))).backups;
const shifted = (time: string | null, ms: number) => new Date(Date.parse(time ?? '') + ms).toISOString();

test('createPostgresBackup: 202 with the backup and its operation, beside which nothing else is held; a second waits its turn', async () => {
  const { ask, serviceId } = await service();
  const answer = await ask('POST', `${at(serviceId)}/backups`, { as: 'member' });
  expect(answer.status).toBe(202);
  const { backup, operation } = backupOf(answer);
  expect(backup).toMatchObject({ serviceId, kind: 'manual', status: 'running', sizeBytes: null, completedAt: null, restoreFrom: null, restoreUntil: null, verifiedAt: null });
  expect(operation).toMatchObject({ kind: 'postgres.backup', resourceId: serviceId, state: 'pending' });
  expect(api.started.filter(({ id }) => id === operation.id)).toMatchObject([{ workflow: 'backupPostgres', workflowId: `postgres-backup/${backup.id}`, payload: { serviceId, backupId: backup.id, operationId: operation.id, generation: 1 } }]);
  expect(listed(await ask('GET', `${at(serviceId)}/backups`))).toEqual([backup]);
  expect(read.service(await ask('GET', at(serviceId)))).toMatchObject({ status: 'available', operationId: null, backups: { retentionDays: 3, earliestRestoreTime: null, latestRestoreTime: null } });
  expect((await ask('POST', `${at(serviceId)}/backups`)).body).toMatchObject({ code: 'invalid_state' });
  const { rows } = await api.database.pool.query(`select changes from audit_entry where target_id = $1`, [serviceId]);
  expect(JSON.stringify(rows)).toContain(backup.id);
});

test('listPostgresBackups: pages go newest first; five manual backups are kept, a trial has none', async () => {
  const { ask, serviceId } = await service();
  const ids = [await complete(serviceId, 30), await complete(serviceId, 20), await complete(serviceId, 10)];
  const first = await ask('GET', `${at(serviceId)}/backups?limit=2`);
  expect(listed(first).map(({ id }) => id)).toEqual([ids[2], ids[1]]);
  expect(listed(await ask('GET', `${at(serviceId)}/backups?limit=2&cursor=${String(first.body['nextCursor'])}`)).map(({ id }) => id)).toEqual([ids[0]]);
  await api.database.pool.query(`insert into postgres_backup (id, service_id, kind, status, size_bytes, completed_at, restore_from) select 'bak_' || n || $1, $1, 'manual', 'complete', 1, now(), now() from generate_series(1, 5) n`, [serviceId]);
  const refused = await ask('POST', `${at(serviceId)}/backups`);
  expect([refused.status, refused.body]).toMatchObject([402, { code: 'plan_limit_reached', limit: 5, used: 5 }]);
  const trial = await service('available', 'trial');
  expect((await trial.ask('POST', `${at(trial.serviceId)}/backups`)).body).toMatchObject({ code: 'plan_limit_reached', limit: 0, used: 0 });
});

test.each([['suspended', 403, 'service_suspended'], ['provisioning', 400, 'invalid_state'], ['updating', 400, 'invalid_state'], ['failed', 400, 'invalid_state'], ['deleting', 400, 'invalid_state'], ['deleted', 404, 'not_found']] as const)(
  'a service that is %s: backups answer %i %s', async (status, code, error) => {
    const { ask, serviceId } = await service(status);
    expect([(await ask('POST', `${at(serviceId)}/backups`)).status, (await ask('POST', `${at(serviceId)}/backups`)).body['code']]).toEqual([code, error]);
    const list = await ask('GET', `${at(serviceId)}/backups`);
    expect(list.status).toBe(code === 400 ? 200 : code);
    const restore = await ask('POST', `${at(serviceId)}/restore`);
    expect(restore.status).toBe(status === 'updating' ? 400 : code);
  });

test('restorePostgresService: 202 of a new service, counted and paid like one, that says what it is made from', async () => {
  const { ask, serviceId, tenant } = await service();
  const [older, newer] = [await complete(serviceId, 600), await complete(serviceId, 60)];
  const { earliestRestoreTime, latestRestoreTime } = await windowOf(ask, serviceId);
  const target = shifted(earliestRestoreTime, 60_000);
  const answer = await ask('POST', `${at(serviceId)}/restore`, { as: 'member', body: { targetTime: target, displayName: 'as it was' } });
  expect(answer.status).toBe(202);
  const { service: made, operation } = read.accepted(answer);
  expect(made).toMatchObject({ displayName: 'as it was', plan: 'starter', status: 'provisioning', sourceServiceId: serviceId, operationId: operation.id, deletionProtection: false });
  expect(operation).toMatchObject({ kind: 'postgres.restore', resourceId: made.id });
  expect(answer.headers.get('location')).toMatch(new RegExp(`/postgres/services/${made.id}$`));
  expect(api.started.filter(({ id }) => id === operation.id)).toMatchObject([{ workflow: 'restorePostgres', workflowId: `postgres-restore/${operation.id}`, payload: { serviceId: made.id, generation: 1, source: 'backup', seconds: 604 } }]);
  const sourceOf = async (id: string) => (await api.database.pool.query('select restore_backup_id as backup, restore_target as target, run_seconds as seconds from postgres_service where id = $1', [id])).rows[0];
  expect(await sourceOf(made.id)).toEqual({ backup: older, target: new Date(target), seconds: 604 });
  const { rows: [counted] } = await api.database.pool.query(`select sum(used)::int as used from quota_counter where scope_id = $1 and resource like 'postgres.services%'`, [tenant.projectId]);
  expect(counted).toEqual({ used: 2 });
  const latest = read.accepted(await ask('POST', `${at(serviceId)}/restore`));
  expect(latest.service).toMatchObject({ displayName: 'orders (restored)' });
  expect(await sourceOf(latest.serviceId)).toMatchObject({ backup: newer, target: new Date(latestRestoreTime ?? '') });
});

test('a time outside the window is refused with earliest and latest; so is a backup that is none; the ends are inside', async () => {
  const { ask, serviceId } = await service();
  const none = await ask('POST', `${at(serviceId)}/restore`);
  expect([none.status, none.body]).toMatchObject([400, { code: 'validation_error', earliest: null, latest: null }]);
  const backupId = await complete(serviceId, 60);
  const { earliestRestoreTime: earliest, latestRestoreTime: latest } = await windowOf(ask, serviceId);
  const restore = (body: object) => ask('POST', `${at(serviceId)}/restore`, { body });
  for (const body of [{ targetTime: shifted(earliest, -1) }, { targetTime: shifted(latest, 1) }, { backupId: newId('bak') }, { backupId: 'nonsense' }]) {
    const answer = await restore(body);
    expect([answer.status, answer.body]).toMatchObject([400, { code: 'validation_error', earliest, latest }]);
  }
  expect((await restore({ targetTime: latest, backupId })).body).toMatchObject({ code: 'validation_error' });
  expect((await restore({ targetTime: 'yesterday' })).status).toBe(400);
  expect((await restore({ targetTime: earliest })).status).toBe(202);
  expect((await restore({ backupId })).status).toBe(202);
});

test('a plan the data does not fit, or a count that is full, is 402 without effect', async () => {
  const { ask, serviceId, tenant } = await service('available', 'launch');
  await complete(serviceId, 60, 3 * 1024 ** 3);
  const refused = await ask('POST', `${at(serviceId)}/restore`, { body: { plan: 'starter' } });
  expect([refused.status, refused.body]).toMatchObject([402, { code: 'plan_limit_reached', resource: 'postgres.storage_bytes', upgradeTo: 'launch' }]);
  const { rows } = await api.database.pool.query('select count(*)::int as n from postgres_service where project_id = $1', [tenant.projectId]);
  expect(rows).toEqual([{ n: 1 }]);
});

test('nobody restores or lists another tenant’s backups', async () => {
  const { serviceId } = await service();
  await complete(serviceId, 60);
  const other = api.askFor(await createTenant(api.database, api.config.AUTH_SECRET));
  expect((await other('GET', `${at(serviceId)}/backups`)).status).toBe(404);
  expect((await other('POST', `${at(serviceId)}/backups`)).status).toBe(404);
  expect((await other('POST', `${at(serviceId)}/restore`)).status).toBe(404);
});

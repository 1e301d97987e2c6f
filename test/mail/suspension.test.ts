import { inTransaction } from '../../src/db/transaction';
import { resumeByOperator, resumeFromPayment, suspendByOperator, suspendForPayment } from '../../src/mail/service';
import { withApi } from '../support/api';
import { createTenant, type Tenant } from '../support/tenant';

const api = withApi();
let tenant: Tenant;
let serviceId: string;
const ask = async (method: string, path: string, json?: unknown) => (await api.ask(
  method, `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}${path}`, { headers: { cookie: tenant.cookies.owner }, ...(json === undefined ? {} : { json }) })).body;
const shown = async () => {
  const { status, suspendedReason } = (await ask('GET', `/mail/services/${serviceId}`)).service;
  return [status, suspendedReason];
};
const query = async (sql: string, ...values: unknown[]) => (await api.deps.db.pool.query(sql, values)).rows;

beforeEach(async () => {
  tenant = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  serviceId = (await ask('POST', '/mail/services', { displayName: 'Mail', plan: 'growth' })).mailServiceId;
});

test('an unpaid account suspends every service of the organisation, paid it resumes them; each is told once', async () => {
  const pay = (work: typeof suspendForPayment) => inTransaction(api.deps.db, (tx) => work(tx, tenant.orgId));
  await pay(suspendForPayment);
  await pay(suspendForPayment);
  expect(await shown()).toEqual(['suspended', 'payment']);
  await pay(resumeFromPayment);
  await pay(resumeFromPayment);
  expect(await shown()).toEqual(['active', null]);
  expect(await query('select type from mail_event where mail_service_id = $1 order by received_at, id', serviceId)).toEqual([{ type: 'service.suspended' }, { type: 'service.resumed' }]);
});

test('what an operator suspended is not resumed by a payment, and comes back by an operator', async () => {
  expect(await suspendByOperator(api.deps, serviceId)).toBe(true);
  expect(await suspendByOperator(api.deps, serviceId)).toBe(false);
  await inTransaction(api.deps.db, (tx) => suspendForPayment(tx, tenant.orgId));
  await inTransaction(api.deps.db, (tx) => resumeFromPayment(tx, tenant.orgId));
  expect(await shown()).toEqual(['suspended', 'admin']);
  expect(await resumeByOperator(api.deps, serviceId)).toBe(true);
  expect(await shown()).toEqual(['active', null]);
  expect(await resumeByOperator(api.deps, 'mls_nobody')).toBe(false);
});

test('reasons of a suspension stand side by side: each is lifted by who set it, and the operator lifts all', async () => {
  const pay = (work: typeof suspendForPayment) => inTransaction(api.deps.db, (tx) => work(tx, tenant.orgId));
  await pay(suspendForPayment);
  expect(await suspendByOperator(api.deps, serviceId)).toBe(true);
  expect(await shown()).toEqual(['suspended', 'payment']);
  await pay(resumeFromPayment);
  expect(await shown()).toEqual(['suspended', 'admin']);
  await pay(suspendForPayment);
  expect(await resumeByOperator(api.deps, serviceId)).toBe(true);
  expect(await shown()).toEqual(['active', null]);
  expect(await query('select type from mail_event where mail_service_id = $1 order by received_at, id', serviceId)).toEqual([{ type: 'service.suspended' }, { type: 'service.resumed' }]);
  expect(await query('select reputation_since is not null as anew from mail_service where id = $1', serviceId)).toEqual([{ anew: true }]);
});

test('paid again, a service is judged by the same mail as before', async () => {
  await inTransaction(api.deps.db, (tx) => suspendForPayment(tx, tenant.orgId));
  await inTransaction(api.deps.db, (tx) => resumeFromPayment(tx, tenant.orgId));
  expect(await query('select reputation_since from mail_service where id = $1', serviceId)).toEqual([{ reputation_since: null }]);
});

test('a suspended service can be deleted, and a suspended domain is no sender until it is verified anew', async () => {
  const { domain } = await ask('POST', `/mail/services/${serviceId}/domains`, { domain: 'halted.test' });
  await query(`update mail_domain set status = 'verified' where id = $1`, domain.id);
  expect(await suspendByOperator(api.deps, domain.id)).toBe(true);
  expect((await ask('GET', '/mail/domains/halted.test')).domain).toMatchObject({ status: 'suspended', canSend: false, nextCheckAt: null });
  expect((await ask('POST', '/mail/domains/halted.test/verify')).domain.status).toBe('suspended');
  expect(await resumeByOperator(api.deps, domain.id)).toBe(true);
  expect((await ask('GET', '/mail/domains/halted.test')).domain).toMatchObject({ status: 'pending', records: domain.records });
  await suspendByOperator(api.deps, serviceId);
  expect(await ask('DELETE', `/mail/services/${serviceId}`)).toMatchObject({ deleted: true, service: { status: 'deleting', suspendedReason: null } });
});

test('overage switched on lifts the ceiling, off it is what is included', async () => {
  const [{ id }] = (await ask('GET', `/billing/subscriptions?resourceId=${serviceId}`)).subscriptions;
  const ceiling = async () => (await query('select ceiling::int as ceiling from mail_usage where mail_service_id = $1', serviceId))[0];
  await ask('PATCH', `/billing/subscriptions/${id}`, { overage: true });
  expect(await ceiling()).toEqual({ ceiling: null });
  await ask('PATCH', `/billing/subscriptions/${id}`, { overage: false });
  expect(await ceiling()).toEqual({ ceiling: 100_000 });
});

test('notices go to the webhooks that asked for their type, in the same commit', async () => {
  const { webhook } = await ask('POST', `/mail/services/${serviceId}/webhooks`, { url: 'https://hooks.example.com/mail', events: ['service.suspended', 'suppression.created'] });
  await suspendByOperator(api.deps, serviceId);
  await resumeByOperator(api.deps, serviceId);
  await ask('POST', `/mail/services/${serviceId}/suppressions`, { address: 'a@x.test' });
  const bodies = (await query('select body from mail_webhook_delivery where webhook_id = $1 order by created_at', webhook.id)).map(({ body }) => JSON.parse(body));
  expect(bodies).toMatchObject([
    { type: 'service.suspended', data: { mailServiceId: serviceId, status: 'suspended', reason: 'admin', messageId: null } },
    { type: 'suppression.created', data: { mailServiceId: serviceId, recipient: 'a@x.test', reason: 'manual' } },
  ]);
});

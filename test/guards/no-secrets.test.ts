import { randomBytes } from 'node:crypto';
import { withApi } from '../support/api';
import type { Answer } from '../support/http';

// Passwords and tokens that occur nowhere else are sent through the whole application, in good and in bad requests; then
// everything the application keeps or says is searched for them.
const api = withApi({ RATE_SIGN_UP_PER_HOUR: '1000', RATE_SIGN_IN_PER_MINUTE: '1000', SIGNUP_MODE: 'open' });
const canaries = new Set<string>();
const answers: { what: string; text: string }[] = [];

const canary = (kind: string) => {
  const value = `${kind}-${randomBytes(12).toString('hex')}`;
  canaries.add(value);
  return value;
};
const ask = async (method: string, path: string, ask: Parameters<typeof api.ask>[2]): Promise<Answer> => {
  const answer = await api.ask(method, path, ask);
  answers.push({ what: `${method} ${path.split('?')[0]} ${answer.status}`, text: answer.text });
  return answer;
};
const cookieOf = ({ headers }: Answer) => headers['set-cookie']?.[0]?.split(';')[0] ?? '';

test('passwords, tokens, cookies and keys are in no log line, no row and no answer', async () => {
  const password = canary('password');
  const email = `${canary('mailbox').slice(0, 20)}@holdfast.test`;
  const signedUp = await ask('POST', '/v1/api/auth/sign-up', { json: { email, displayName: 'Canary', password } });
  expect(signedUp.status).toBe(200);
  const cookie = cookieOf(signedUp);
  const sessionToken = decodeURIComponent(cookie.split('=').slice(1).join('=')).split('.')[0] ?? '';
  expect(sessionToken.length).toBeGreaterThan(16);
  canaries.add(sessionToken);
  canaries.delete([...canaries].find((value) => value.startsWith('mailbox')) ?? '');

  const newPassword = canary('password');
  await ask('POST', '/v1/api/auth/sign-in', { json: { email, password: canary('password') } });
  await ask('POST', '/v1/api/auth/sign-in', { json: { email, password: { nested: canary('password') } } });
  await ask('POST', '/v1/api/auth/sign-in', { headers: { 'content-type': 'application/json' }, raw: `{"email":"${email}","password":"${canary('password')}"` });
  await ask('POST', '/v1/api/auth/sign-in', { headers: { 'content-type': 'text/plain' }, raw: canary('password') });
  await ask('POST', '/v1/api/auth/sign-up', { json: { email, displayName: 'Canary', password: canary('password') } });
  await ask('POST', '/v1/api/auth/password', { headers: { cookie }, json: { currentPassword: canary('password'), newPassword: canary('password') } });
  expect((await ask('POST', '/v1/api/auth/password', { headers: { cookie }, json: { currentPassword: password, newPassword } })).status).toBe(200);
  expect((await ask('POST', '/v1/api/auth/reauthenticate', { headers: { cookie }, json: { password: newPassword } })).status).toBe(200);
  await ask('POST', '/v1/api/auth/setup', { json: { token: canary('token'), email, displayName: 'x', password: canary('password'), orgDisplayName: 'x' } });
  await ask('POST', '/v1/api/auth/verify-email', { json: { token: canary('token') } });
  await ask('POST', '/v1/api/auth/password-reset/confirm', { json: { token: canary('token'), newPassword: canary('password') } });
  await ask('POST', '/v1/api/invitations/accept', { headers: { cookie }, json: { token: canary('token') } });
  await ask('GET', `/v1/api/auth/session?token=${canary('token')}`, { headers: { cookie, authorization: `Bearer ${canary('token')}`, 'x-request-id': 'mine', 'user-agent': 'canary' } });
  await ask('GET', '/v1/api/auth/session', { headers: { cookie: `__Host-holdfast_session=${canary('token')}.AAAA` } });
  await ask('GET', `/v1/api/orgs/${api.tenant.orgSlug}?cursor=${canary('token')}`, { headers: { cookie } });
  await ask('POST', '/v1/api/auth/sign-out', { headers: { cookie } });
  await nothingLeaks();
});

test('also when the database fails in the middle of it', async () => {
  for (const table of ['account', '"user"', 'session', 'audit_entry', 'organization']) {
    const hidden = `hidden_${randomBytes(4).toString('hex')}`;
    await api.deps.db.pool.query(`alter table ${table} rename to ${hidden}`);
    const body = { email: `${randomBytes(6).toString('hex')}@holdfast.test`, password: canary('password') };
    const statuses = [await ask('POST', '/v1/api/auth/sign-up', { json: { ...body, displayName: 'Canary' } }), await ask('POST', '/v1/api/auth/sign-in', { json: body })].map(({ status }) => status);
    await api.deps.db.pool.query(`alter table ${hidden} rename to ${table.replaceAll('"', '') === 'user' ? '"user"' : table}`);
    if (table === '"user"') expect(statuses).toEqual([500, 500]);
  }
  expect(api.logLines.filter((line) => line.includes('request failed')).length).toBeGreaterThan(0);
  await nothingLeaks();
});

test('an answer kept for a repeated request holds nothing that is said once', async () => {
  const headers = { cookie: api.tenant.cookies.owner, 'idempotency-key': 'canary' };
  const path = `/v1/api/orgs/${api.tenant.orgSlug}/projects/${api.tenant.projectSlug}/postgres/services`;
  expect((await ask('POST', path, { headers, json: { displayName: 'canary', plan: 'starter' } })).status).toBe(202);
  expect((await ask('POST', path, { headers, json: { displayName: 'canary', plan: 'starter' } })).headers['idempotency-replayed']).toBe('true');
  await nothingLeaks();
});

test('the search finds what is there', () => {
  const value = canary('seen');
  for (const text of [`{"x":"${value}"}`, Buffer.from(value).toString('base64'), Buffer.from(value).toString('hex')]) expect(leaksIn([{ what: 'log', text }])).toEqual(['log: seen']);
});

type Place = { what: string; text: string };

async function nothingLeaks(): Promise<void> {
  expect(api.logLines.length).toBeGreaterThan(0);
  expect(leaksIn([...api.logLines.map((text) => ({ what: 'log', text })), ...answers, ...await everyRow()])).toEqual([]);
}

function leaksIn(places: readonly Place[]): string[] {
  return places.flatMap(({ what, text }) => [...canaries].filter((value) => formsOf(value).some((form) => text.includes(form))).map((value) => `${what}: ${value.split('-')[0]}`));
}

/** As it is, in base64 and in hexadecimal. */
function formsOf(value: string): string[] {
  return [value, Buffer.from(value).toString('base64').slice(0, 24), Buffer.from(value).toString('hex')];
}

/** Every row of every table but the engine's sessions, whose token is the key they are found by. */
async function everyRow(): Promise<Place[]> {
  const tables = await api.deps.db.pool.query<{ name: string }>(`select quote_ident(relname) as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname <> 'session'`);
  const rows = await Promise.all(tables.rows.map(async ({ name }) => (await api.deps.db.pool.query<{ text: string }>(`select t::text as text from ${name} t`)).rows.map(({ text }) => ({ what: name, text }))));
  return rows.flat();
}

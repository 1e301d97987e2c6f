import { AppError } from '../../src/core/errors';
import { isApiKey } from '../../src/identity/api-key';
import { checkApiKey, newApiKey } from '../../src/identity/service';
import { withDatabase } from '../support/database';
import { insertApiKey } from '../support/mail-rows';
import { rounds } from '../support/rounds';
import { createTenant, type Tenant } from '../support/tenant';

const held = withDatabase();
let tenant: Tenant;

beforeAll(async () => {
  tenant = await createTenant(held.database, 'test-secret-test-secret-test-secret');
});

const makeKey = () => insertApiKey(held.database, tenant, { scopes: ['mail:send', 'mail:read'] });
const check = (header: string | undefined) => checkApiKey({ db: held.database }, header).then(({ keyId }) => keyId, (error: unknown) => (error instanceof AppError ? `${error.code}: ${error.message}` : 'broken'));
const refused = 'invalid_api_key: The API key is missing or not valid.';

test('a key has its form and its checksum; one changed character is noticed without the database', () => {
  const { key, prefix, last4 } = newApiKey('test');
  expect(key).toMatch(/^hf_test_[0-9A-Za-z]{46}$/);
  expect(key.startsWith(prefix) && key.endsWith(last4)).toBe(true);
  expect(isApiKey(key)).toBe(true);
  for (let i = 8; i < key.length; i++) expect(isApiKey(key.slice(0, i) + (key[i] === 'x' ? 'y' : 'x') + key.slice(i + 1))).toBe(false);
  expect(isApiKey(`${key}0`)).toBe(false);
});

test('a live key names itself, its project and its scopes, and is marked as used once a minute', async () => {
  const { key, id } = await makeKey();
  expect(await checkApiKey({ db: held.database }, `Bearer ${key}`)).toEqual({
    kind: 'apiKey', keyId: id, name: 'ci', scopes: ['mail:send', 'mail:read'], mode: 'live', allowedDomains: [],
    serviceId: expect.stringMatching(/^mls_/), serviceStatus: 'active', sendsPerSecond: 10, orgId: tenant.orgId, projectId: tenant.projectId,
  });
  const usedAt = async () => (await held.database.pool.query('select last_used_at from api_key where id = $1', [id])).rows[0];
  const first = await usedAt();
  await check(`Bearer ${key}`);
  expect(await usedAt()).toEqual(first);
});

test('absent, malformed, unknown, revoked, expired and out of grace are the same refusal', async () => {
  const answers = [await check(undefined), await check('Basic x'), await check('Bearer nonsense'), await check(`Bearer ${newApiKey('live').key}`)];
  for (const column of ['revoked_at', 'expires_at', 'grace_until']) {
    const { key, id } = await makeKey();
    await held.database.pool.query(`update api_key set ${column} = now() - interval '1 ms' where id = $1`, [id]);
    answers.push(await check(`Bearer ${key}`));
  }
  expect(answers).toEqual(answers.map(() => refused));
});

test('a revoked key fails on the very next check, in races too', async () => {
  for (let i = 0; i < rounds(100, 10_000); i++) {
    const { key, id } = await makeKey();
    const during = check(`Bearer ${key}`);
    await held.database.pool.query('update api_key set revoked_at = now() where id = $1', [id]);
    expect(await check(`Bearer ${key}`)).toBe(refused);
    expect([id, refused]).toContain(await during);
  }
}, rounds(60_000, 900_000));

test('keys of a project or organisation that is on its way out are dead', async () => {
  const other = await createTenant(held.database, 'test-secret-test-secret-test-secret');
  const before = tenant;
  tenant = other;
  const { key, id } = await makeKey();
  tenant = before;
  expect(await check(`Bearer ${key}`)).toBe(id);
  await held.database.pool.query(`update project set status = 'deleting' where id = $1`, [other.projectId]);
  expect(await check(`Bearer ${key}`)).toBe(refused);
});

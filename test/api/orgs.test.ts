import { field, idIn, withIdentityApi, type Answer } from '../support/identity-api';

const api = withIdentityApi({ LIMIT_OWNED_ORGS: '4', LIMIT_PROJECTS: '4' });
const slugOf = (value: unknown) => String(field(value, 'slug'));
const same = ({ status, body: { requestId: _, ...body } }: Answer) => ({ status, body });
const create = (cookie: string, body: object, headers = {}) => api.ask('POST', '/api/orgs', { cookie, body, headers });

test('createOrg gives an organisation with its owner, its project default and its dns subscription', async () => {
  const ann = await api.person();
  const answer = await create(ann.cookie, { displayName: 'Äcme & Söhne GmbH' });
  expect(answer).toMatchObject({
    status: 200,
    body: { org: { slug: 'acme-sohne-gmbh', displayName: 'Äcme & Söhne GmbH', timeZone: 'UTC', status: 'active', role: 'owner' }, project: { slug: 'default', status: 'active', orgId: idIn(answer.body['org']) } },
  });
  const { rows } = await api.database.pool.query('select product, plan from subscription where resource_id = $1', [idIn(answer.body['org'])]);
  expect(rows).toEqual([{ product: 'dns', plan: 'launch' }]);
});

test('a name gives a free slug, a given slug must be free; twenty at once get twenty different ones', async () => {
  const people = await Promise.all(Array.from({ length: 5 }, () => api.person()));
  const answers = await Promise.all(people.flatMap((person) => Array.from({ length: 4 }, () => create(person.cookie, { displayName: 'Same Name' }))));
  expect(new Set(answers.map(({ body }) => slugOf(body['org']))).size).toBe(20);
  const ann = await api.person();
  expect(await create(ann.cookie, { displayName: 'X', slug: 'same-name' })).toMatchObject({ status: 400, body: { code: 'slug_taken' } });
});

test.each([['Admin', 'admin-2'], ['日本', 'org'], ['a'.repeat(60), 'a'.repeat(36)], ['--x--', 'x']])('the name %p becomes the slug %p', async (displayName, slug) => {
  const ann = await api.person();
  expect(slugOf((await create(ann.cookie, { displayName })).body['org'])).toBe(slug);
});

test.each(['admin', 'a--b', '-a', 'a-', 'A', 'a.b', '', 'a'.repeat(41), '../x'])('the slug %p is refused', async (slug) => {
  const ann = await api.person();
  expect(await create(ann.cookie, { displayName: 'X', slug })).toMatchObject({ status: 400, body: { code: 'validation_error' } });
});

test('of eight at once the allowed four are made and the rest are 402 without a trace', async () => {
  const ann = await api.person();
  const answers = await Promise.all(Array.from({ length: 8 }, () => create(ann.cookie, { displayName: 'Quota' })));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 402, 402, 402, 402]);
  expect(answers.find(({ status }) => status === 402)?.body).toMatchObject({ code: 'plan_limit_reached', resource: 'orgs', limit: 4, used: 4, upgradeTo: null });
  expect((await api.database.pool.query('select 1 from member where "userId" = $1', [ann.userId])).rowCount).toBe(4);
});

test('one Idempotency-Key makes one organisation', async () => {
  const ann = await api.person();
  const answers = await Promise.all(Array.from({ length: 8 }, () => create(ann.cookie, { displayName: 'Once' }, { 'idempotency-key': 'k1' })));
  expect(new Set(answers.map(({ body }) => idIn(body['org']))).size).toBe(1);
});

test('listOrgs and getOrg show mine with my role; a foreign organisation is like one that never was', async () => {
  const [ann, bob] = [await api.person(), await api.person()];
  const [one, two] = [await api.org(ann), await api.org(ann)];
  expect((await api.ask('GET', '/api/orgs', { cookie: ann.cookie })).body).toMatchObject({ orgs: [{ id: two.orgId, role: 'owner' }, { id: one.orgId }], hasMore: false });
  expect((await api.ask('GET', one.path, { cookie: ann.cookie })).body).toMatchObject({ org: { id: one.orgId, createdAt: expect.any(String), updatedAt: expect.any(String) } });
  const foreign = await api.ask('GET', one.path, { cookie: bob.cookie });
  expect(same(foreign)).toEqual(same(await api.ask('GET', '/api/orgs/never-was', { cookie: bob.cookie })));
  expect(foreign.status).toBe(404);
});

test('updateOrg changes name, zone and slug; members with the old slug learn the new one, others nothing', async () => {
  const [ann, bob] = [await api.person(), await api.person()];
  const org = await api.org(ann, 'Before');
  const slug = `after-${org.slug}`;
  const changed = await api.ask('PATCH', org.path, { cookie: ann.cookie, body: { displayName: 'After', timeZone: 'Europe/Berlin', slug } });
  expect(changed).toMatchObject({ status: 200, body: { org: { displayName: 'After', timeZone: 'Europe/Berlin', slug, role: 'owner' } } });
  expect(await api.ask('GET', org.path, { cookie: ann.cookie })).toMatchObject({ status: 404, body: { code: 'not_found', movedTo: slug } });
  expect(same(await api.ask('GET', org.path, { cookie: bob.cookie }))).toEqual(same(await api.ask('GET', '/api/orgs/never-was', { cookie: bob.cookie })));
  expect(await create(bob.cookie, { displayName: 'X', slug: org.slug })).toMatchObject({ status: 400, body: { code: 'slug_taken' } });
  expect((await api.ask('PATCH', `/api/orgs/${slug}`, { cookie: ann.cookie, body: { slug: org.slug } })).status).toBe(200);
  await api.database.pool.query(`update slug_alias set reserved_until = now() where slug = $1`, [slug]);
  expect((await create(bob.cookie, { displayName: 'X', slug })).status).toBe(200);
});

test.each([{}, { timeZone: 'Mars/Base' }, { timeZone: '+02:00' }, { slug: 'admin' }, { displayName: '' }, { name: 'x' }])('updateOrg refuses %p', async (body) => {
  const ann = await api.person();
  const org = await api.org(ann);
  expect(await api.ask('PATCH', org.path, { cookie: ann.cookie, body })).toMatchObject({ status: 400, body: { code: 'validation_error' } });
});

test('createProject, listProjects, getProject and updateProject follow the same rules inside the organisation', async () => {
  const ann = await api.person();
  const org = await api.org(ann);
  const make = (body: object) => api.ask('POST', `${org.path}/projects`, { cookie: ann.cookie, body });
  expect(await make({ displayName: 'Default' })).toMatchObject({ status: 200, body: { project: { slug: 'default-2', displayName: 'Default', orgId: org.orgId, status: 'active' } } });
  expect(await make({ displayName: 'X', slug: 'default' })).toMatchObject({ status: 400, body: { code: 'slug_taken' } });
  const answers = await Promise.all(Array.from({ length: 8 }, () => make({ displayName: 'Many' })));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 402, 402, 402, 402, 402, 402]);
  expect((await api.ask('GET', `${org.path}/projects`, { cookie: ann.cookie })).body['projects']).toHaveLength(4);
  const path = `${org.path}/projects/default-2`;
  expect((await api.ask('PATCH', path, { cookie: ann.cookie, body: { displayName: 'Second', slug: 'second' } })).body).toMatchObject({ project: { displayName: 'Second', slug: 'second' } });
  expect(await api.ask('GET', path, { cookie: ann.cookie })).toMatchObject({ status: 404, body: { movedTo: 'second' } });
  expect((await api.ask('GET', `${org.path}/projects/second`, { cookie: ann.cookie })).status).toBe(200);
  expect(await api.ask('PATCH', `${org.path}/projects/second`, { cookie: ann.cookie, body: { timeZone: 'UTC' } })).toMatchObject({ status: 400, body: { code: 'validation_error' } });
});

test('a project of another organisation is not found under mine', async () => {
  const [ann, bob] = [await api.person(), await api.person()];
  const [mine, theirs] = [await api.org(ann), await api.org(bob)];
  await api.ask('POST', `${theirs.path}/projects`, { cookie: bob.cookie, body: { displayName: 'Secret', slug: 'secret' } });
  const foreign = await api.ask('GET', `${mine.path}/projects/secret`, { cookie: ann.cookie });
  expect(same(foreign)).toEqual(same(await api.ask('GET', `${mine.path}/projects/never-was`, { cookie: ann.cookie })));
  expect(foreign.status).toBe(404);
});

import { z } from 'zod';
import { digits, pageAnswer, pageQuery } from '../../src/core/page';
import { openApiDocument } from '../../src/http/openapi';
import { operationsOf } from '../../src/http/operation';
import { brokenSchemas, faultsOf } from '../support/openapi-schema';

const { open, org, project, scoped, signed } = operationsOf<unknown>();
const Shelf = z.object({ id: z.string(), size: z.enum(['small', 'large']) }).meta({ id: 'Shelf' });
const Layout = z.strictObject({ rows: z.number().int().default(3) }).meta({ id: 'Layout' });

const operations = [
  project('postgres:read')({
    id: 'listShelves', method: 'get', path: '/shelves', summary: 'Lists shelves', tag: 'Shelves',
    query: z.object({ ...pageQuery, empty: z.enum(['true', 'false']).transform((value) => value === 'true').optional() }),
    answer: z.object({ shelves: z.array(Shelf), ...pageAnswer }), handle: async () => ({ shelves: [], nextCursor: null, hasMore: false }),
  }),
  project('postgres:create')({
    id: 'createShelf', method: 'post', path: '/shelves', summary: 'Builds a shelf', tag: 'Shelves', status: 202, idempotent: true, errors: ['plan_limit_reached'],
    body: z.strictObject({ layout: Layout, wood: z.string().optional() }), answer: z.object({ shelf: Shelf, layout: Layout }),
    handle: async () => ({ shelf: { id: 'x', size: 'small' as const }, layout: { rows: 3 } }),
  }),
  org('org:delete')({ id: 'burnShelf', method: 'delete', path: '/shelves/:shelfId', summary: 'Burns it', tag: 'Fire', fresh: true, aliases: ['/fire/:shelfId'], answer: Shelf, handle: async () => ({ id: 'x', size: 'small' as const }) }),
  scoped('mail:send')({ id: 'sendShelf', method: 'post', path: '/api/shelves/send', summary: 'Sends it', tag: 'Shelves', answer: z.object({}), handle: async () => ({}) }),
  signed({ id: 'hearShelf', method: 'post', path: '/api/shelves/heard', summary: 'Hears it', tag: 'Shelves', answer: z.object({}), handle: async () => ({}) }),
  open({ id: 'lookAtShelf', method: 'get', path: '/api/shelf', summary: 'Looks', tag: 'Shelves', answer: z.object({}), handle: async () => ({}) }),
];
const document = openApiDocument(operations);

test('the document is valid by the published schema of OpenAPI 3.1', () => {
  expect(faultsOf(document)).toEqual([]);
  expect(faultsOf({ ...document, paths: { '/x': { get: { responses: { 99: {} } } } } })).not.toEqual([]);
});

test('every schema in it is valid JSON Schema and every reference leads somewhere', () => {
  expect(brokenSchemas(document)).toEqual([]);
  expect(brokenSchemas({ ...document, components: { ...document.components, schemas: { Wrong: { type: 'nothing' } } } })).toEqual(expect.arrayContaining(['#/components/schemas/Shelf', 'Wrong']));
});

test('paths, parameters and permissions come from the operation', () => {
  const burn = document.paths['/api/orgs/{orgSlug}/shelves/{shelfId}']?.['delete'];
  expect(burn).toMatchObject({ operationId: 'burnShelf', 'x-permission': 'org:delete', 'x-fresh-session': true, security: [{ session: ['org:delete'] }] });
  expect(burn?.parameters.map(({ name }) => name)).toEqual(['orgSlug', 'shelfId']);
  expect(Object.keys(burn?.responses ?? {})).toEqual(['200', '400', '401', '403', '404', '429', '500']);
});

test('an alias is a path of its own that names the path it stands for', () => {
  expect(document.paths['/fire/{shelfId}']?.['delete']).toMatchObject({ 'x-alias-of': '/api/orgs/{orgSlug}/shelves/{shelfId}' });
  expect(document.paths['/fire/{shelfId}']?.['delete']?.operationId).toBeUndefined();
  expect(document.paths['/fire/{shelfId}']?.['delete']?.parameters.map(({ name }) => name)).toEqual(['shelfId']);
});

test('numbers and switches of a query are shown as what they mean', () => {
  const list = document.paths['/api/orgs/{orgSlug}/projects/{projectSlug}/shelves']?.['get'];
  const schemaOf = (name: string) => list?.parameters.find((parameter) => parameter.name === name)?.schema;
  expect(schemaOf('limit')).toEqual({ type: 'integer', minimum: 1, maximum: 100 });
  expect(schemaOf('empty')).toEqual({ type: 'boolean' });
  expect(openApiDocument([open({ ...anyOperation, query: z.object({ wait: digits.optional() }) })]).paths['/api/any']?.['get']?.parameters[0]?.schema).toMatchObject({ type: 'string' });
});

test('an answer is enveloped and open, a request body closed', () => {
  const create = document.paths['/api/orgs/{orgSlug}/projects/{projectSlug}/shelves']?.['post'];
  expect(create?.responses['202']?.content['application/json'].schema).toEqual({
    type: 'object', required: ['ok', 'shelf', 'layout'],
    properties: { ok: { type: 'boolean', const: true }, shelf: { $ref: '#/components/schemas/Shelf' }, layout: { $ref: '#/components/schemas/Layout' } },
  });
  expect(create?.requestBody?.content['application/json'].schema).toMatchObject({ additionalProperties: false, properties: { layout: { $ref: '#/components/schemas/LayoutInput' } } });
  expect(document.components.schemas['Layout']).toMatchObject({ required: ['rows'] });
  expect(document.components.schemas['Layout']).not.toHaveProperty('additionalProperties');
  expect(document.components.schemas['LayoutInput']).toMatchObject({ additionalProperties: false });
});

test('an accepted request names the headers that lead on, an idempotent one its key', () => {
  const create = document.paths['/api/orgs/{orgSlug}/projects/{projectSlug}/shelves']?.['post'];
  expect(Object.keys(create?.responses['202']?.headers ?? {})).toEqual(expect.arrayContaining(['Location', 'Link', 'Retry-After', 'Idempotency-Replayed']));
  expect(create?.parameters.map(({ name }) => name)).toContain('Idempotency-Key');
  expect(create?.responses['402']?.description).toContain('plan_limit_reached');
});

test.each([['/api/shelves/send', ['401', '403']], ['/api/shelves/heard', ['401']], ['/api/shelf', []]])('%s gives the refusals of its kind of caller', (path, statuses) => {
  const [operation] = Object.values(document.paths[path] ?? {});
  expect(Object.keys(operation?.responses ?? {}).filter((status) => ['401', '402', '403', '404'].includes(status))).toEqual(statuses);
});

test('two schemas of one name are refused', () => {
  const other = open({ ...anyOperation, answer: z.object({ shelf: z.object({ other: z.string() }).meta({ id: 'Shelf' }) }), handle: async () => ({ shelf: { other: '' } }) });
  expect(() => openApiDocument([...operations, other])).toThrow('id Shelf');
});

const anyOperation = { id: 'any', method: 'get', path: '/api/any', summary: '', tag: '', answer: z.object({}), handle: async () => ({}) } as const;

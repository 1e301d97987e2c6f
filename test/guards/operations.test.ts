import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { statusOfCode } from '../../src/core/errors';
import { openApiDocument } from '../../src/http/openapi';
import { routes } from '../../src/http/routes';
import { addresses } from '../../src/http/server';

const document = openApiDocument(routes);

test('every operation says who may call it', () => {
  for (const { id, auth } of routes) expect({ id, kind: auth.kind }).toEqual({ id, kind: expect.stringMatching(/^(open|self|permission|scope|signature)$/) });
});

test('operation ids are verbNoun and each is used once', () => {
  const ids = routes.map(({ id }) => id);
  expect(ids.filter((id) => !/^[a-z]+([A-Z][a-z]*)+$/.test(id))).toEqual([]);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
});

test('no two operations answer the same method and address', () => {
  const all = routes.flatMap((operation) => addresses(operation).map((path) => `${operation.method} ${path.replace(/:\w+/g, ':')}`));
  expect(all.filter((address, index) => all.indexOf(address) !== index)).toEqual([]);
});

test('every operation is called by a test', () => {
  const sources = testFiles(join(__dirname, '..')).map((file) => ({ file, text: readFileSync(file, 'utf8') }));
  const untested = routes.filter(({ id }) => !sources.some(({ file, text }) => file.endsWith(`/${id}.test.ts`) || text.includes(id)));
  expect(untested.map(({ id }) => id)).toEqual([]);
});

test('only POSTs honour Idempotency-Key, only writes take a body or answer 202', () => {
  for (const { id, method, idempotent, body, status } of routes) {
    if (idempotent) expect({ id, method }).toEqual({ id, method: 'post' });
    if (method === 'get') expect({ id, body, status }).toEqual({ id, body: undefined, status: 200 });
  }
});

test('a 202 names the operation a client can follow', () => {
  for (const { responses, ...operation } of Object.values(document.paths).flatMap((methods) => Object.values(methods))) {
    const accepted = responses['202'];
    if (accepted && !/sendMail|mail\/send/.test(JSON.stringify(operation))) expect({ ...operation, text: JSON.stringify(accepted.content) }).toMatchObject({ text: expect.stringContaining('"operation"') });
  }
});

test('what is accepted by POST honours Idempotency-Key', () => {
  expect(routes.filter(({ method, status, idempotent }) => method === 'post' && status === 202 && !idempotent).map(({ id }) => id)).toEqual([]);
});

test('every resource has an id and says when it was made and changed', () => {
  const resources = Object.entries(document.components.schemas).filter(([, { properties }]) => typeof properties === 'object' && properties !== null && 'id' in properties);
  expect(resources.length).toBeGreaterThan(0);
  for (const [name, { properties }] of resources) expect({ name, properties }).toMatchObject({ properties: { createdAt: { format: 'date-time' }, updatedAt: { format: 'date-time' } } });
});

test('every list says whether it goes on', () => {
  for (const { operationId, responses } of Object.values(document.paths).flatMap((methods) => Object.values(methods))) {
    const properties: unknown = responses['200']?.content['application/json'].schema['properties'];
    const names = typeof properties === 'object' && properties !== null ? Object.keys(properties) : [];
    expect({ operationId, data: names.includes('data') }).toEqual({ operationId, data: false });
    if (names.includes('nextCursor') || names.includes('hasMore')) expect({ operationId, names }).toEqual({ operationId, names: expect.arrayContaining(['nextCursor', 'hasMore']) });
  }
});

test('exactly the nine status codes of the specification are ever answered', () => {
  const nine = [200, 202, 400, 401, 402, 403, 404, 429, 500];
  expect([...new Set([200, 202, ...Object.values(statusOfCode)])].toSorted((a, b) => a - b)).toEqual(nine);
  const documented = Object.values(document.paths).flatMap((methods) => Object.values(methods)).flatMap(({ responses }) => Object.keys(responses).map(Number));
  expect(documented.filter((status) => !nine.includes(status))).toEqual([]);
});

function testFiles(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.test.ts') && !name.startsWith('guards/')).map((name) => join(folder, name));
}

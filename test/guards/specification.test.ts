import { orgPrefix, projectPrefix } from '../../src/http/operation';
import { routes } from '../../src/http/routes';
import { addresses } from '../../src/http/server';
import { notBuiltYet } from './not-built-yet';
import { specificationAccepted, specificationEndpoints, specificationScopes } from './specification-endpoints';

const rowOf = (method: string, path: string) => `${method.toUpperCase()} ${path.replace(projectPrefix, '{P}')}`;
const built = new Map(routes.map((operation) => [rowOf(operation.method, operation.path), operation]));

test('every row of the specification is an operation or on the list of what is not built yet', () => {
  const missing = specificationEndpoints.filter((row) => !built.has(row));
  expect(notBuiltYet).toEqual(missing);
});

test('a built row answers at /v1, with the status, the credential and the prefix the specification gives it', () => {
  for (const row of specificationEndpoints) {
    const operation = built.get(row);
    if (!operation) continue;
    expect({ row, status: operation.status }).toEqual({ row, status: specificationAccepted.includes(row) ? 202 : 200 });
    expect(addresses(operation)[0]).toBe(`/v1${operation.path}`);
    const scope = specificationScopes[row];
    if (scope) expect(operation.auth).toEqual({ kind: 'scope', scope });
    else expect({ row, kind: operation.auth.kind }).toEqual({ row, kind: row.includes('{P}') ? 'permission' : 'signature' });
  }
});

test('the forms without prefix that the specification shows are aliases of the same operations', () => {
  for (const [row, alias] of [['POST /api/mail/send', '/mail/send'], ['GET /api/mail/messages/:id', '/mail/messages/:id']]) {
    const operation = built.get(row ?? '');
    if (operation) expect(operation.aliases).toContain(alias);
  }
});

test('what asks for a permission lives under an organisation or a project', () => {
  for (const { id, path, auth } of routes) {
    if (auth.kind === 'permission') expect({ id, path }).toEqual({ id, path: expect.stringContaining(auth.scope === 'project' ? projectPrefix : orgPrefix) });
  }
});

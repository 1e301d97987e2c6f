import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openApiDocument } from '../../src/http/openapi';
import { routes } from '../../src/http/routes';
import { brokenSchemas, faultsOf } from '../support/openapi-schema';

test('docs/openapi.json is the document of the present routes (npm run openapi writes it)', () => {
  const committed: unknown = JSON.parse(readFileSync(join(__dirname, '../../docs/openapi.json'), 'utf8'));
  expect(committed).toEqual(JSON.parse(JSON.stringify(openApiDocument(routes))));
});

test('it is valid OpenAPI 3.1 with valid schemas, and no reference leads nowhere', () => {
  const document = openApiDocument(routes);
  expect(faultsOf(document)).toEqual([]);
  expect(brokenSchemas(document)).toEqual([]);
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openApiDocument } from '../../src/http/openapi';
import { routes } from '../../src/http/routes';

test('docs/openapi.json is the document of the present routes (npm run openapi writes it)', () => {
  const committed: unknown = JSON.parse(readFileSync(join(__dirname, '../../docs/openapi.json'), 'utf8'));
  expect(committed).toEqual(JSON.parse(JSON.stringify(openApiDocument(routes))));
});

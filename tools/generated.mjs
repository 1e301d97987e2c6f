// Writes the files that are made from the code and committed: docs/openapi.json and the configuration table of README.md.
// A guard test fails when one of them is not what this would write.
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const require = createRequire(import.meta.url);
const [what] = process.argv.slice(2);

if (what === 'openapi') {
  const { openApiDocument } = require(join(root, 'dist/src/http/openapi.js'));
  const { routes } = require(join(root, 'dist/src/http/routes.js'));
  await writeFile(join(root, 'docs/openapi.json'), `${JSON.stringify(openApiDocument(routes), null, 1)}\n`);
} else if (what === 'config-table') {
  const { configTableText, replaceConfigTable } = require(join(root, 'dist/test/support/config-table.js'));
  const readme = join(root, 'README.md');
  await writeFile(readme, replaceConfigTable(await readFile(readme, 'utf8'), configTableText()));
} else {
  process.stderr.write('usage: node tools/generated.mjs openapi|config-table\n');
  process.exit(2);
}

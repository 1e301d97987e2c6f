import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { bundledWorkflows } from '../support/workflow-lab';

const root = join(__dirname, '../..');
/** The SDK and what it brings. Anything else costs CPU in every workflow (zod alone 2.6 times), or breaks the sandbox. */
const allowed = ['@temporalio/common', '@temporalio/workflow', 'long', 'ms', 'nexus-rpc'];

let code = '';
beforeAll(async () => {
  const bundle = await bundledWorkflows();
  code = 'code' in bundle ? bundle.code : '';
}, 60_000);

const found = (pattern: RegExp) => [...new Set([...code.matchAll(pattern)].map(([, name = '']) => name))].toSorted();

test('the workflow bundle builds and holds no package but the SDK: no zod, no Prisma, no Node module', () => {
  expect(found(/node_modules\/((?:@[\w.-]+\/)?[\w.-]+)\//g)).toEqual(allowed);
  expect(found(/require\("([a-z:/_]+)"\)/g)).toEqual([]);
});

test('of our own code it holds workflows, codes, ids and state tables alone', () => {
  const products = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const ours = found(new RegExp(`\\./((?:workflows|activities|src/(?:${products.join('|')}))/[\\w/.-]+)\\.ts`, 'g'));
  expect(ours).toContain('workflows/job');
  expect(ours.filter((path) => !/^workflows\/|^src\/core\/errors$|^src\/temporal\/ids$|^src\/\w+\/state$/.test(path))).toEqual([]);
});

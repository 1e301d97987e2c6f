// `npm test`: prepares the clone, then types, lint and jest. `npm test -- <jest arguments>` runs only jest, with them.
// The last line says `N passed, N failed`; types and lint count as one each.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { run, say, step } from './steps.mjs';

const jestArguments = process.argv.slice(2);
let [passed, failed] = [0, 0];
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => { interrupted = true; });

const count = (ok) => (ok ? (passed += 1) : (failed += 1));

async function check(name, args) {
  const result = await step(name, () => run(process.execPath, args));
  count(result.ok);
  if (!result.ok) say(`${name} failed:\n${result.output.trimEnd()}`);
}

async function jest(temporal) {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-jest-'));
  const report = join(dir, 'report.json');
  try {
    const { ok } = await run(process.execPath, ['node_modules/jest/bin/jest.js', '--json', `--outputFile=${report}`, ...jestArguments],
      { show: true, env: { TEMPORAL_BIN: temporal, NODE_ENV: 'test' } });
    const result = JSON.parse(await readFile(report, 'utf8').catch(() => 'null'));
    passed += result?.numPassedTests ?? 0;
    const failures = (result?.numFailedTests ?? 0) + (result?.numRuntimeErrorTestSuites ?? 0);
    failed += ok ? failures : Math.max(failures, 1);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

try {
  await prepare();
  const { findTemporalBinary } = createRequire(import.meta.url)(join(root, 'dist/src/dev/temporal-binary.js'));
  const temporal = await findTemporalBinary({ env: process.env, root, say });
  if (jestArguments.length === 0) {
    await Promise.all([
      check('Checking types', ['node_modules/typescript/bin/tsc', '--noEmit']),
      check('Linting', ['node_modules/eslint/bin/eslint.js', '.']),
    ]);
  }
  if (!interrupted) await jest(temporal);
} catch (error) {
  failed += 1;
  process.stderr.write(`${error.stack}\n`);
}
if (interrupted) failed = Math.max(failed, 1);
say(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

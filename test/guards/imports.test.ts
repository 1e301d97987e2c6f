import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const root = join(__dirname, '../..');
const depcruise = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');

test('nothing imports what its layer may not (.dependency-cruiser.cjs)', async () => {
  const run = promisify(execFile)(process.execPath, [depcruise, '--config', '.dependency-cruiser.cjs', '--output-type', 'err', 'src', 'activities', 'workflows'], { cwd: root });
  const report = await run.then(({ stdout }) => stdout, (error: unknown) => (typeof error === 'object' && error !== null && 'stdout' in error ? String(error.stdout) : String(error)));
  expect(report).toContain('no dependency violations found');
}, 120_000);

// `npm run registry -- …`: delegates domains under `test` at the registry of `npm start`.
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { run } from './steps.mjs';

await prepare();
const { ok } = await run(process.execPath, ['--enable-source-maps', join(root, 'dist/src/commands/registry.js'), ...process.argv.slice(2)], { show: true });
if (!ok) process.exitCode = 1;

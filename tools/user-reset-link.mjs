// `npm run user:reset-link <email>`: prints a link to choose a new password. Takes the environment of the API process.
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { run } from './steps.mjs';

await prepare();
const { ok } = await run(process.execPath, ['--enable-source-maps', join(root, 'dist/src/commands/user-reset-link.js'), ...process.argv.slice(2)], { show: true });
if (!ok) process.exitCode = 1;

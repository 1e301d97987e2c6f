// `npm run mail:suspend -- <id>`, `npm run mail:resume -- <id>`: a mail service or a sender domain. Takes the environment of the API process.
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { run } from './steps.mjs';

await prepare();
const { ok } = await run(process.execPath, ['--enable-source-maps', join(root, 'dist/src/commands/mail-suspension.js'), ...process.argv.slice(2)], { show: true });
if (!ok) process.exitCode = 1;

// `npm run postgres:suspend -- <id>`, `npm run secrets:reseal` …: runs src/commands/<name> with the environment of the API process.
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { run } from './steps.mjs';

const [name, ...rest] = process.argv.slice(2);
await prepare();
const { ok } = await run(process.execPath, ['--enable-source-maps', join(root, `dist/src/commands/${name}.js`), ...rest], { show: true });
if (!ok) process.exitCode = 1;

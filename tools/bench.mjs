// `npm run bench [name …]`: runs the benchmarks of bench/ whose file name contains one of the names, one after another.
// Each is a file `<product>-<name>.ts` that prints its figures beside those of a peer measured in the same run.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { run, say } from './steps.mjs';

await prepare();
const wanted = process.argv.slice(2);
const files = (await readdir(join(root, 'bench'))).filter((name) => /^[a-z]+-[a-z0-9-]+\.ts$/.test(name)).toSorted();
const chosen = files.filter((name) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
if (chosen.length === 0) say(`No such benchmark. There are: ${files.map((name) => name.replace('.ts', '')).join(', ')}`);
for (const name of chosen) {
  say(`\n== ${name.replace('.ts', '')}`);
  const { ok } = await run(process.execPath, ['--enable-source-maps', join(root, 'dist/bench', name.replace('.ts', '.js'))], { show: true });
  if (!ok) process.exitCode = 1;
}
if (chosen.length === 0) process.exitCode = 1;

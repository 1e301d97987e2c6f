// Compiles src, workflows, activities, bench and the tests' support to dist/ with swc: a second instead of tsc's twenty. The
// workflows are also bundled for Temporal's sandbox, so that no worker spends seconds on it at its start.
// Types are checked by `npm run types`, which `npm test` runs. The new dist/ takes the old one's place when it is whole.
import { createHash } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const folders = ['src', 'workflows', 'activities', 'bench', 'test/support'];
const options = JSON.parse(await readFile(join(root, '.swcrc'), 'utf8'));
const [dist, fresh, old] = ['dist', `.dist-new-${process.pid}`, `.dist-old-${process.pid}`].map((name) => join(root, name));

async function* sources(dir) {
  for (const entry of await readdir(dir, { withFileTypes: true }).catch(() => [])) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts')) yield path;
  }
}

async function compile(path) {
  const name = path.slice(root.length + 1).replace(/\.ts$/, '.js');
  const target = join(fresh, name);
  const sourceFileName = relative(dirname(join(dist, name)), path);
  const { code, map } = await transform(await readFile(path, 'utf8'), { ...options, filename: path, sourceFileName, sourceMaps: true });
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, `${code}\n//# sourceMappingURL=${target.split('/').at(-1)}.map\n`);
  await writeFile(`${target}.map`, map);
}

/** All that workflows may import (design.md §3); while it is the same, the last bundle is still right. */
const inBundle = /^(workflows\/|src\/core\/|src\/temporal\/|src\/[a-z]+\/state\.ts$)/;

async function bundle(files) {
  const hash = createHash('sha256').update(await readFile(join(root, 'package-lock.json')));
  for (const path of files.toSorted()) if (inBundle.test(path.slice(root.length + 1))) hash.update(path.slice(root.length)).update(await readFile(path));
  const digest = hash.digest('hex');
  const [target, stamp] = ['workflow-bundle.js', 'workflow-bundle.made-of'];
  await writeFile(join(fresh, stamp), digest);
  if ((await readFile(join(dist, stamp), 'utf8').catch(() => '')) === digest) return copyFile(join(dist, target), join(fresh, target));
  const { bundleWorkflowCode } = await import('@temporalio/worker');
  const quiet = { log() {}, trace() {}, debug() {}, info() {}, warn: console.warn, error: console.error };
  const { code } = await bundleWorkflowCode({ workflowsPath: join(fresh, 'workflows/index.js'), logger: quiet });
  await writeFile(join(fresh, target), code);
}

try {
  const files = [];
  for (const folder of folders) for await (const path of sources(join(root, folder))) files.push(path);
  await mkdir(fresh, { recursive: true });
  await Promise.all(files.map(compile));
  await bundle(files);
  await rename(dist, old).catch(() => undefined);
  await rename(fresh, dist);
} finally {
  await rm(fresh, { recursive: true, force: true });
  await rm(old, { recursive: true, force: true });
}

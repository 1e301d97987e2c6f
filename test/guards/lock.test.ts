import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const names = z.record(z.string(), z.string()).default({});
const lockShape = z.object({ packages: z.record(z.string(), z.object({ dependencies: names, optionalDependencies: names })) });

/** npm leaves out what its registry lacks for other platforms, and then `npm ci` refuses the lock on every machine. */
test('package-lock.json has every package that another one names, also those for other platforms', () => {
  const { packages } = lockShape.parse(JSON.parse(readFileSync(join(__dirname, '../../package-lock.json'), 'utf8')));
  const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies }).filter((name) => !resolves(packages, path, name)).map((name) => `${path} needs ${name}`));
  expect(missing).toEqual([]);
});

/** Node's own way: in the package's node_modules, then in that of each folder above. */
function resolves(packages: Readonly<Record<string, unknown>>, from: string, name: string): boolean {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    if (`${at}${at === '' ? '' : '/'}node_modules/${name}` in packages) return true;
    if (at === '') return false;
  }
}

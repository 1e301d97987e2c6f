import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { configTable } from '../../src/config';
import { configTableText, replaceConfigTable } from '../support/config-table';

test('the configuration table of README.md is the schema of src/config.ts (npm run config:table writes it)', () => {
  const readme = readFileSync(join(__dirname, '../../README.md'), 'utf8');
  expect(readme).toBe(replaceConfigTable(readme, configTableText()));
});

test('every key is described', () => {
  expect(configTable().filter(({ description }) => description.length < 3)).toEqual([]);
});

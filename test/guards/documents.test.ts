import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { routes } from '../../src/http/routes';
import { addresses } from '../../src/http/server';

const root = join(__dirname, '../..');
const documents = ['README.md', ...readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)]
  .map((name) => ({ name, text: readFileSync(join(root, name), 'utf8') }));
const scripts: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts;

test.each(documents)('$name names only npm scripts that exist', ({ text }) => {
  const named = [...text.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, script]) => script);
  expect(named.filter((script) => !Object.keys(scripts ?? {}).includes(script ?? ''))).toEqual([]);
});

test.each(documents)('$name names only files that exist', ({ name, text }) => {
  const inCode = [...text.matchAll(/`((?:src|test|docs|prisma|tools|workflows|activities|bench|deploy)\/[\w./-]*)`/g)].map(([, path]) => path ?? '');
  const links = [...text.matchAll(/\]\(([^)#:]+)\)/g)].map(([, path]) => join(name, '..', path ?? ''));
  expect([...inCode, ...links].filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test.each(documents)('$name shows only routes that exist', ({ text }) => {
  const known = new Set(routes.flatMap((operation) => addresses(operation).map((path) => `${operation.method.toUpperCase()} ${path.replace(/:\w+/g, ':')}`)));
  const shown = [...text.matchAll(/`(GET|POST|PUT|PATCH|DELETE) ((?:\/v1)?\/api\/[^`\s?]*)/g)].map(([, method, path = '']) => `${method} ${path.replace(/:\w+/g, ':')}`);
  expect(shown.filter((row) => !known.has(row))).toEqual([]);
});

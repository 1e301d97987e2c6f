// A process of its own that applies the migrations, for the guard that several may do so at once.
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const Module = require('node:module');
const { transformSync } = require('@swc/core');

const path = join(__dirname, '../../src/db/migrate.ts');
const { code } = transformSync(readFileSync(path, 'utf8'), { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'commonjs' }, swcrc: false });
const compiled = new Module(path, module);
compiled.filename = path;
compiled.paths = Module._nodeModulePaths(join(__dirname, '../..'));
compiled._compile(code, path);

const [url, dir] = process.argv.slice(2);
compiled.exports.migrate(url, dir).then((applied) => process.stdout.write(JSON.stringify(applied)));

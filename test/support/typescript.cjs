// Lets a process of a test run our sources as they are: `node -r test/support/typescript.cjs file.ts`.
const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { transformSync } = require('@swc/core');

Module._extensions['.ts'] = (module, path) => {
  const { code } = transformSync(readFileSync(path, 'utf8'), {
    jsc: { parser: { syntax: 'typescript' }, target: 'es2022', keepClassNames: true }, module: { type: 'commonjs' }, swcrc: false, filename: path, sourceMaps: 'inline',
  });
  module._compile(code, path);
};

// What only exists as an ES module is transformed, also in node_modules; `import()` becomes require(), jest's own loader has no other.
const esModules = ['better-auth', '@better-auth', 'better-call', '@better-fetch', '@noble', 'jose', 'nanostores', 'kysely', 'defu', 'rou3', '@standard-schema'];
const options = {
  jsc: { target: 'es2022', keepClassNames: true },
  module: { type: 'commonjs', ignoreDynamic: false },
  sourceMaps: 'inline',
  swcrc: false,
};

/** @type {import('jest').Config} */
module.exports = {
  rootDir: __dirname,
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  moduleFileExtensions: ['ts', 'js', 'mjs', 'cjs', 'json', 'node'],
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.holdfast/'],
  transform: {
    '\\.ts$': ['@swc/jest', { ...options, jsc: { ...options.jsc, parser: { syntax: 'typescript' } } }],
    '\\.m?js$': ['@swc/jest', { ...options, jsc: { ...options.jsc, parser: { syntax: 'ecmascript' } } }],
  },
  transformIgnorePatterns: [`/node_modules/(?!(${esModules.join('|')})/)`],
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  maxWorkers: 2,
  testTimeout: 30_000,
  collectCoverage: false,
  watchman: false,
};

// Who may import whom (docs/architecture.md). Each layer lists what it may import of ours; anything else is a violation.
const product = '(identity|billing|mail|dns|gateway|postgres)';
const own = 'src/$1/';
const pure = '(schemas|state|rules|ports|permissions|networks|common-passwords)';
const sharedPure = `src/${product}/(schemas|rules|permissions)(/|[.]ts$)`;
const core = 'src/core/';

/** `types`: what may be imported as a type only. */
const layers = [
  { name: 'core', from: '^src/core/', may: [core] },
  { name: 'config', from: '^src/config[.]ts$', may: [core, 'src/temporal/queues[.]ts$'] },
  { name: 'db', from: '^src/db/', may: [core, 'src/db/'], types: ['src/config[.]ts$'] },
  { name: 'temporal', from: '^src/temporal/', may: [core, 'src/db/', 'src/temporal/'], types: ['src/config[.]ts$'] },
  { name: 'operations', from: '^src/operations/', may: [core, 'src/db/', 'src/temporal/', 'src/operations/'], types: ['src/config[.]ts$'] },
  {
    name: 'http', from: '^src/http/', types: ['src/config[.]ts$', 'src/identity/service[.]ts$'],
    may: [core, 'src/db/', 'src/temporal/', 'src/operations/', 'src/http/', 'src/identity/(service|permissions)[.]ts$', `src/${product}/operations(/|[.]ts$)`],
  },
  { name: 'product-pure', from: `^src/${product}/${pure}(/|[.]ts$)`, may: [core, `${own}${pure}(/|[.]ts$)`, sharedPure, 'src/operations/view[.]ts$'] },
  { name: 'product-store', from: `^src/${product}/store(/|[.]ts$)`, may: [core, 'src/db/', own, sharedPure] },
  { name: 'product-operations', from: `^src/${product}/operations(/|[.]ts$)`, may: [core, own, 'src/http/operation[.]ts$', 'src/operations/view[.]ts$'], types: ['src/db/', 'src/config[.]ts$'] },
  {
    name: 'product-service', from: `^src/${product}/(?!(schemas|state|rules|ports|permissions|networks|common-passwords|store|operations)(/|[.]ts$))`,
    may: [core, own, 'src/db/', 'src/operations/', 'src/temporal/(ids|queues)[.]ts$', `src/${product}/service[.]ts$`, sharedPure],
    types: [`src/${product}/ports(/|[.]ts$)`, 'src/config[.]ts$'],
  },
  { name: 'adapters', from: '^src/adapters/', may: [core, 'src/adapters/', sharedPure, `src/${product}/state[.]ts$`], types: [`src/${product}/ports(/|[.]ts$)`, 'src/config[.]ts$'] },
  { name: 'edge', from: `^src/edge/${product}/`, may: [core, 'src/db/', 'src/edge/$1/', `${own}(state|rules|schemas|store|ports)(/|[.]ts$)`, 'src/edge/[^/]+[.]ts$'], types: ['src/config[.]ts$'] },
  {
    name: 'activities', from: '^activities/', types: ['src/config[.]ts$', `src/${product}/`, 'src/temporal/'],
    may: [core, 'src/db/', 'src/operations/', 'src/temporal/(ids|queues)[.]ts$', 'activities/', `src/${product}/(service|store|state|rules|schemas|ports)(/|[.]ts$)`],
  },
  { name: 'workflows', from: '^workflows/', may: ['workflows/', `src/${product}/state[.]ts$`, 'src/temporal/(ids|queues)[.]ts$', 'src/core/(errors|job-errors)[.]ts$'], types: ['activities/', core] },
];

const ours = '^(src|activities|workflows)/';
const generated = '^src/db/generated/';
const anyOf = (paths) => `^(${paths.join('|')})`;
const typeOnly = 'type-only';

module.exports = {
  forbidden: [
    ...layers.flatMap(({ name, from, may, types = [] }) => [
      { name, severity: 'error', from: { path: from, pathNot: generated }, to: { path: ours, pathNot: [anyOf(may), anyOf([...may, ...types])].slice(types.length ? 1 : 0) } },
      ...(types.length ? [{ name: `${name}-types`, severity: 'error', from: { path: from, pathNot: generated }, to: { path: anyOf(types), pathNot: anyOf(may), dependencyTypesNot: [typeOnly] } }] : []),
    ]),
    { name: 'entry-files', comment: 'Nothing imports a process.', severity: 'error', from: {}, to: { path: '^src/((api|worker|edge|dev)[.]ts$|commands/)' } },
    { name: 'composition', comment: 'Only the processes compose.', severity: 'error', from: { pathNot: '^src/(api|worker|edge|dev)[.]ts$' }, to: { path: '^src/deps[.]ts$', dependencyTypesNot: [typeOnly] } },
    {
      name: 'pure-packages', comment: 'Domain rules run anywhere.', severity: 'error',
      from: { path: `^src/${product}/${pure}(/|[.]ts$)` }, to: { path: 'node_modules/(@prisma|express|@temporalio|pg|better-auth)/' },
    },
    { name: 'state-packages', comment: 'Workflows may import state.ts.', severity: 'error', from: { path: `^src/${product}/state[.]ts$` }, to: { dependencyTypes: ['npm', 'core'] } },
    {
      name: 'workflow-packages', comment: 'A workflow is deterministic: no zod, no Node module, no Prisma.', severity: 'error',
      from: { path: '^workflows/' }, to: { dependencyTypes: ['npm', 'core'], pathNot: 'node_modules/@temporalio/(workflow|common)/', dependencyTypesNot: [typeOnly] },
    },
    { name: 'engine', comment: 'The account engine has one importer.', severity: 'error', from: { pathNot: '^src/identity/engine' }, to: { path: 'node_modules/(better-auth|@better-auth/[^/]+)/', dependencyTypesNot: [typeOnly] } },
    { name: 'cycles', severity: 'error', from: { pathNot: generated }, to: { circular: true, viaOnly: { dependencyTypesNot: [typeOnly] } } },
    { name: 'development-packages', comment: 'A server installs no development packages.', severity: 'error', from: { pathNot: '^src/dev' }, to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: [typeOnly] } },
    { name: 'undeclared-packages', severity: 'error', from: {}, to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'unknown'] } },
    { name: 'unresolved', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: ['node_modules', generated] },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['node', 'require', 'default', 'types'] },
  },
};

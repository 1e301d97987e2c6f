// The style of the house where a tool can check it. Layout is left to the authors; what may import what is in .dependency-cruiser.cjs.
import tseslint from 'typescript-eslint';

const environment = {
  selector: 'MemberExpression[object.name="process"][property.name="env"], MemberExpression[object.name="process"][property.value="env"]',
  message: 'src/config.ts is the only reader of the environment.',
};

const exact = 'Money is BigInt rationals: no number arithmetic in this file.';
const floats = [
  { selector: 'CallExpression[callee.name=/^(Number|parseInt|parseFloat)$/]', message: exact },
  { selector: 'MemberExpression[object.name=/^(Math|Number)$/]', message: exact },
  { selector: 'BinaryExpression[operator=/^([*][*]|[*]|[/]|%|[-])$/] > Literal[raw=/^[0-9._]+$/]', message: exact },
];

export default tseslint.config(
  { ignores: ['**/dist/**', 'node_modules/**', '.holdfast/**', 'src/db/generated/**', 'coverage/**', 'tools/temporal/**', 'test/histories/**'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: { allowDefaultProject: [] }, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      // The compiler answers these.
      '@typescript-eslint/no-unused-vars': 'off',
      // Numbers in messages, promises in void arrows and optional members that are only compared are how this code reads.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true, allowNullish: true }],
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/unbound-method': 'off',
      '@typescript-eslint/no-meaningless-void-operator': 'off',
      '@typescript-eslint/no-misused-spread': 'off',
      // Temporal's protocol enums are compared with their numbers; a variable set in a callback looks constant to the rule.
      '@typescript-eslint/no-unsafe-enum-comparison': 'off',
      // Types that declare a class where its shape is enough.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/no-deprecated': 'error',
      '@typescript-eslint/consistent-type-assertions': ['error', { assertionStyle: 'never' }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/max-params': ['error', { max: 4, countVoidThis: false }],
      'max-lines': ['error', { max: 250, skipComments: true, skipBlankLines: true }],
      'max-lines-per-function': ['error', { max: 40, skipComments: true, skipBlankLines: true }],
      'max-depth': ['error', 3],
      'no-console': 'error',
      'no-restricted-syntax': ['error', environment],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'prefer-const': 'error',
      'no-var': 'error',
    },
  },
  {
    // A describe block is no function, a made-up server answers what it likes, and tests reach into answers they have just checked.
    files: ['test/**/*.ts', 'bench/**/*.ts'],
    rules: {
      'max-lines': 'off', 'max-lines-per-function': 'off', 'no-restricted-syntax': 'off', 'no-console': 'off',
      '@typescript-eslint/consistent-type-assertions': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off', '@typescript-eslint/no-unsafe-member-access': 'off', '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-explicit-any': 'off', '@typescript-eslint/restrict-plus-operands': 'off', '@typescript-eslint/no-base-to-string': 'off',
      '@typescript-eslint/no-unsafe-return': 'off', '@typescript-eslint/no-unsafe-call': 'off', '@typescript-eslint/no-empty-function': 'off',
    },
  },
  { files: ['src/config.ts'], rules: { 'no-restricted-syntax': 'off' } },
  { files: ['src/billing/rules.ts'], rules: { 'no-restricted-syntax': ['error', environment, ...floats] } },
);

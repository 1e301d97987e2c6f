/**
 * How often a guarantee is put to the test: bounded in `npm test`, as often as the contracts promise in `npm run test:reliability`, which runs
 * every file that imports this one. Time limits scale the same way.
 */
export function rounds(bounded: number, promised: number): number {
  return process.env['TEST_ROUNDS'] === 'full' ? promised : bounded;
}

/** Wire shapes of the security gateway (contract gateway.md §1). */
export * from './match';
export * from './policy';
export * from './asked';
export * from './shown';

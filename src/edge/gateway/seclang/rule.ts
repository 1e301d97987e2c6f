import type { Action, OperatorCall, VariableCall } from './syntax';

/** One rule as it stands in a file; the following ones of its chain hang on `next`. */
export interface ParsedRule {
  /** The id of the chain's first rule. */
  readonly id: string;
  readonly phase: number;
  readonly file: string;
  readonly line: number;
  /** Null for SecAction: always true. */
  readonly variables: readonly VariableCall[] | null;
  readonly operator: OperatorCall | null;
  readonly transformations: readonly string[];
  readonly actions: readonly Action[];
  readonly message: string;
  readonly logData: string | null;
  readonly severity: string | null;
  readonly tags: readonly string[];
  readonly capture: boolean;
  readonly multiMatch: boolean;
  readonly disruptive: Disruptive;
  /** Whether a match is reported (`log`, not `nolog`). */
  readonly logged: boolean;
  readonly skipAfter: string | null;
  readonly skip: number;
  readonly next: ParsedRule | null;
}

export type Disruptive = 'pass' | 'deny' | 'allow' | 'allow:phase' | 'allow:request';

/** Where skipAfter goes on. */
export interface Marker { readonly marker: string }

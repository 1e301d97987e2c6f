import type { ManagedVerdict } from '../../../gateway/ports';
import type { Inspected } from './engine';

/** Between the event loop and the threads of the rule engine. */
/** `until`: `performance.timeOrigin + performance.now()` at which the verdict of what was found so far is due. */
export interface Work { readonly id: number; readonly inspected: Inspected; readonly until: number }
export type FromThread = { readonly kind: 'ready' } | { readonly kind: 'verdict'; readonly id: number; readonly verdict: ManagedVerdict };
/** Where a thread finds its rules. */
export interface RuleFolders { readonly crsDir: string | null; readonly rulesDir: string | null }

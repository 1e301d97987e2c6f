import { requireGuardedPatterns } from '../../gateway/rules/pattern';
import type { ManagedVerdict, RuleEngine } from '../../gateway/ports';
import type { Skipped } from './seclang/directives';
import { createRuleEngine } from './seclang/engine';
import { type LoadedSets, loadSets } from './seclang/sets';
import { startThreads } from './seclang/threads';
import { shortVerdict } from './seclang/verdict';
import { warmUp } from './seclang/warm-up';

export interface RuleEngineOptions {
  /** `CRS_DIR`; null: only the base rules. */
  readonly crsDir: string | null;
  /** `GATEWAY_RULES_DIR`. */
  readonly rulesDir: string;
  /** `GATEWAY_ENGINE_THREADS`; 0: all is done on the event loop, within 250 ms. */
  readonly threads: number;
  /** Of Node, for the threads. */
  readonly execArgv?: readonly string[];
}

export interface StartedRuleEngine {
  readonly engine: RuleEngine;
  /** Sets that are loaded; `crs` is missing when it is not configured or was refused. */
  readonly available: ReadonlySet<'crs' | 'base'>;
  /** For the log, an alert and `/metrics`. */
  readonly report: {
    readonly refused: LoadedSets['refused'];
    readonly sets: readonly { readonly version: string; readonly rules: number; readonly skipped: readonly string[]; readonly ignored: readonly string[]; readonly unguarded: readonly string[] }[];
  };
  /** Resolves when the threads can take work. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

/** Loads the rule sets, starts the threads and proves that expressions are guarded. Throws when they are not: the process must not start. */
export function startRuleEngine(options: RuleEngineOptions): StartedRuleEngine {
  requireGuardedPatterns();
  const { sets, refused } = loadSets(options);
  warmUp(sets);
  const threads = options.threads > 0 ? startThreads({ ...options, count: options.threads }) : null;
  const engine = createRuleEngine({ sets, elsewhere: threads ? (inspected) => threads.inspect(inspected) : null });
  const short = (verdict: ManagedVerdict | Promise<ManagedVerdict>) => (verdict instanceof Promise ? verdict.then(shortVerdict) : shortVerdict(verdict));
  const lines = (list: readonly Skipped[]) => list.map(({ file, line, what }) => `${file}:${line} ${what}`);
  return {
    engine: {
      ...engine,
      inspectRequest: (facts, settings, now) => short(engine.inspectRequest(facts, settings, now)),
      inspectResponse: (facts, response, settings, now) => short(engine.inspectResponse(facts, response, settings, now)),
    },
    available: new Set((['crs', 'base'] as const).filter((name) => sets[name] !== undefined)),
    report: {
      refused, sets: Object.values(sets).map((set) => ({ version: set.version, rules: set.ruleCount, skipped: lines(set.skipped), ignored: lines(set.ignored), unguarded: set.unguarded })),
    },
    ready: threads?.ready ?? Promise.resolve(),
    close: async () => { await threads?.close(); },
  };
}

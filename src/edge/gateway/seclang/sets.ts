import type { Sets } from './engine';
import { loadRuleSet, RuleSetRefused } from './rule-set';
import type { RuleFolders } from './thread-messages';

/** The sets that could be loaded, and for those that could not the reason. */
export interface LoadedSets {
  readonly sets: Sets;
  readonly refused: readonly { readonly ruleSet: 'crs' | 'base'; readonly reason: string; readonly skipped: readonly string[] }[];
}

/** Loads the rule sets of the configured folders (contract gateway.md §4.7). Never throws. */
export function loadSets({ crsDir, rulesDir }: RuleFolders): LoadedSets {
  const refused: LoadedSets['refused'][number][] = [];
  const load = (ruleSet: 'crs' | 'base', directory: string | null) => {
    if (directory === null) return {};
    try {
      return { [ruleSet]: loadRuleSet(ruleSet, directory) };
    } catch (error) {
      const skipped = error instanceof RuleSetRefused ? error.skipped.map(({ file, line, what }) => `${file}:${line} ${what}`) : [];
      refused.push({ ruleSet, reason: error instanceof Error ? error.message : String(error), skipped });
      return {};
    }
  };
  return { sets: { ...load('base', rulesDir), ...load('crs', crsDir) }, refused };
}

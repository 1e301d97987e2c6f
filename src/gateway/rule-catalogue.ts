import type { PolicyEvaluator, RuleDescription } from './ports';

/** What the operator has loaded: versions by set (null: not loaded), the set of a policy that names none, and ids of rules. */
export type RuleFacts = {
  sets: { crs: string | null; base: string | null };
  defaultSet: 'crs' | 'base';
  /** Null for a set that is not loaded. */
  idsOf: { crs: ReadonlySet<string> | null; base: ReadonlySet<string> | null };
};

const known = new WeakMap<PolicyEvaluator, Promise<RuleFacts>>();

/** Read once per process: rule sets change with a restart. */
export function loadRuleFacts(evaluator: PolicyEvaluator): Promise<RuleFacts> {
  const asked = known.get(evaluator) ?? ask(evaluator);
  known.set(evaluator, asked);
  asked.catch(() => known.delete(evaluator));
  return asked;
}

async function ask(evaluator: PolicyEvaluator): Promise<RuleFacts> {
  const sets = await evaluator.ruleSets();
  const idsOf = async (set: 'crs' | 'base') => (sets[set] === null ? null : new Set((await evaluator.describe(set)).map(({ id }) => id)));
  return { sets, defaultSet: sets.crs === null ? 'base' : 'crs', idsOf: { crs: await idsOf('crs'), base: await idsOf('base') } };
}

/** Rules of a set that fit: `q` in the id or, whatever the case, in the message; the tag whole; levels up to the one given. */
export function filterRules(rules: readonly RuleDescription[], wanted: { q?: string | undefined; tag?: string | undefined; paranoiaLevel?: number | undefined }): RuleDescription[] {
  const q = wanted.q?.toLowerCase();
  return rules.filter(({ id, message, tags, paranoiaLevel }) => (q === undefined || id.includes(q) || message.toLowerCase().includes(q))
    && (wanted.tag === undefined || tags.includes(wanted.tag)) && (wanted.paranoiaLevel === undefined || paranoiaLevel === wanted.paranoiaLevel));
}

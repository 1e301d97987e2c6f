import type { ManagedVerdict, RequestFacts, RuleMatch, SuggestedExclusion } from '../../../gateway/ports';
import type { Policy } from '../../../gateway/schemas';
import type { Evaluation, Match } from './evaluate';
import type { Target } from './transaction';

/** Of a matched value; what is kept of it is masked and shorter (`../mask`). */
const matchedReadMax = 4_096;
const matchesMax = 10;
const ranks: ReadonlyMap<string, number> = new Map(['EMERGENCY', 'ALERT', 'CRITICAL', 'ERROR', 'WARNING', 'NOTICE', 'INFO', 'DEBUG'].map((name, rank) => [name, rank]));

interface Outcome { readonly outbound: boolean; readonly finished: boolean }

/** Score, blocking and the deciding rule: of the highest severity the first, among those that count when it blocks. */
export function verdictOf(evaluation: Evaluation, facts: RequestFacts, settings: Policy['managedRules'], { outbound, finished }: Outcome): ManagedVerdict {
  const threshold = outbound ? settings.outboundThreshold : settings.inboundThreshold;
  const sums = outbound ? evaluation.outbound : evaluation.inbound;
  const score = sums.slice(1, settings.paranoiaLevel + 1).reduce((sum, part) => sum + part, 0);
  const blocked = score >= threshold || evaluation.denied;
  const counting = ({ rule, logOnly }: Match) => !logOnly && rule.paranoiaLevel <= settings.paranoiaLevel;
  const found = blocked && evaluation.matches.some(counting) ? evaluation.matches.filter(counting) : evaluation.matches;
  const deciding = found.reduce<Match | null>((best, match) => (best === null || rank(match) < rank(best) ? match : best), null);
  const described = new Map(evaluation.matches.map((match) => [match, describe(match)]));
  return {
    score, threshold, blocked, deciding: (deciding && described.get(deciding)) ?? null, matches: [...described.values()],
    suggestion: deciding ? suggest(deciding, facts) : null, fault: finished || blocked ? null : 'budget',
  };
}

/** The verdict with at most ten matches, the deciding one among them. */
export function shortVerdict(verdict: ManagedVerdict): ManagedVerdict {
  const { deciding } = verdict;
  if (verdict.matches.length <= matchesMax) return verdict;
  const matches = verdict.matches.slice(0, matchesMax);
  if (deciding && !matches.includes(deciding)) matches.splice(-1, 1, deciding);
  return { ...verdict, matches };
}

function rank({ rule }: Match): number {
  return ranks.get(rule.severity ?? '') ?? ranks.size;
}

function describe({ rule, message, target, value, score, logOnly }: Match): RuleMatch {
  const variable = target ? readable(target.key === '' ? target.collection : `${target.collection}:${target.key}`).slice(0, 256) : '';
  return {
    id: rule.id, message: readable(message), severity: rule.severity, score: logOnly ? 0 : score, paranoiaLevel: rule.paranoiaLevel, tags: rule.tags, variable,
    matched: readable(value),
  };
}

/** Bytes as text that a database keeps: no NUL, nothing that is not UTF-8. */
function readable(bytes: string): string {
  const head = bytes.slice(0, matchedReadMax);
  return (/[\x80-\xff]/.test(head) ? Buffer.from(head, 'latin1').toString('utf8') : head).replaceAll('\0', '\uFFFD');
}

const nameable: Readonly<Record<string, string>> = { ARGS: 'ARGS', ARGS_GET: 'ARGS', ARGS_POST: 'ARGS', REQUEST_HEADERS: 'REQUEST_HEADERS', REQUEST_COOKIES: 'REQUEST_COOKIES' };
const whole: Readonly<Record<string, string>> = { ARGS_NAMES: 'ARGS_NAMES', ARGS_GET_NAMES: 'ARGS_NAMES', ARGS_POST_NAMES: 'ARGS_NAMES', REQUEST_BODY: 'REQUEST_BODY', FILES: 'FILES' };
const pathMax = 1_024;
const nameMax = 128;

/** The narrowest exclusion that would have let this match pass. */
function suggest({ rule, target }: Match, facts: RequestFacts): SuggestedExclusion {
  const path = facts.path.startsWith('/') && facts.path.length <= pathMax ? facts.path : null;
  return { ruleId: rule.id, target: target ? targetOf(target) : '*', pathPrefix: path };
}

function targetOf({ collection, key }: Target): string {
  const named = nameable[collection];
  if (named === undefined) return whole[collection] ?? '*';
  const name = readable(key);
  const fits = name !== '' && name.length <= nameMax && !/[\p{Cc}\uFFFD]/u.test(name);
  return fits ? `${named}:${name}` : named;
}

import type { Policy } from '../../../gateway/schemas';
import type { Rule } from './compile';
import type { Target } from './transaction';

type Managed = Policy['managedRules'];

interface Exclusion { readonly collection: string; readonly key: string | null; readonly pathPrefix: string | null; readonly until: number }

/** What a zone's policy takes out of the shared rules, for look-up at match time. */
export interface Settings {
  readonly disabled: ReadonlySet<string>;
  readonly logOnly: ReadonlySet<string>;
  readonly byRule: ReadonlyMap<string, readonly Exclusion[]>;
  readonly byTag: ReadonlyMap<string, readonly Exclusion[]>;
}

const compiled = new WeakMap<Managed, Settings>();

/** Settings of a policy, compiled once for its object. */
export function settingsOf(managed: Managed): Settings {
  let settings = compiled.get(managed);
  if (!settings) compiled.set(managed, settings = compileSettings(managed));
  return settings;
}

function compileSettings(managed: Managed): Settings {
  const byRule = new Map<string, Exclusion[]>();
  const byTag = new Map<string, Exclusion[]>();
  for (const { ruleId, tag, target, pathPrefix, expiresAt } of managed.exclusions) {
    const colon = target.indexOf(':');
    const exclusion = {
      collection: colon < 0 ? target : target.slice(0, colon), key: colon < 0 ? null : bytes(target.slice(colon + 1)).toLowerCase(),
      pathPrefix, until: expiresAt === null ? Infinity : Date.parse(expiresAt),
    };
    const [into, name] = ruleId === null ? [byTag, tag ?? ''] as const : [byRule, ruleId] as const;
    into.set(name, [...(into.get(name) ?? []), exclusion]);
  }
  return { disabled: new Set(managed.disabledRules), logOnly: new Set(managed.logOnlyRules), byRule, byTag };
}

/** Names in a policy are Unicode, in a request bytes. */
function bytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Whether the policy takes this value, or (`target` null) the whole rule, from a rule. */
export function isExcluded(settings: Settings, rule: Rule, target: Target | null, { path, now }: { readonly path: string; readonly now: number }): boolean {
  if (settings.byRule.size === 0 && settings.byTag.size === 0) return false;
  const fits = (exclusion: Exclusion) => now < exclusion.until && (exclusion.pathPrefix === null || path.startsWith(exclusion.pathPrefix))
    && (exclusion.collection === '*' || (target !== null && covers(exclusion.collection, exclusion.key, target)));
  return (settings.byRule.get(rule.id)?.some(fits) ?? false) || (settings.byTag.size > 0 && rule.tags.some((tag) => settings.byTag.get(tag)?.some(fits) ?? false));
}

/** ARGS means those of the query and of the body too. */
export function covers(collection: string, key: string | null, target: Target): boolean {
  const same = target.collection === collection || (collection === 'ARGS' && (target.collection === 'ARGS_GET' || target.collection === 'ARGS_POST'))
    || (collection === 'ARGS_NAMES' && /^ARGS_(?:GET|POST)_NAMES$/.test(target.collection)) || (collection === 'REQUEST_COOKIES' && target.collection === 'REQUEST_HEADERS' && target.key === 'cookie' && key === null);
  return same && (key === null || target.key.toLowerCase() === key);
}

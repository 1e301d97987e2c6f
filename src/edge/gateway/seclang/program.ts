import type { Rule } from './compile';
import type { Marker } from './rule';

/** The rules of one phase in order, and where each marker stands. */
export interface Phase { readonly rules: readonly Rule[]; readonly markers: ReadonlyMap<string, number> }

export interface Levels { readonly blocking: number; readonly detection: number }

/** Rules of a set for one pair of paranoia levels: `phases[1]` to `phases[5]`. */
export type Program = readonly Phase[];

/** Gates on the paranoia level are decided here, so that rules above it are not there at all. */
export function programFor(items: readonly (Rule | Marker)[], levels: Levels): Program {
  return [0, 1, 2, 3, 4, 5].map((phase) => phaseFor(items, phase, levels));
}

function phaseFor(items: readonly (Rule | Marker)[], phase: number, levels: Levels): Phase {
  const rules: Rule[] = [];
  const markers = new Map<string, number>();
  let until: string | null = null;
  for (const item of items) {
    if ('marker' in item) {
      if (until === item.marker) until = null;
      markers.set(item.marker, rules.length);
    } else if (item.phase === phase && until === null) {
      const closed = gate(item, levels);
      if (closed === null) rules.push(item);
      else if (closed) until = item.skipAfter;
    }
  }
  return { rules, markers };
}

/** Whether a rule that only skips by level skips now; null for every other rule. */
function gate(rule: Rule, levels: Levels): boolean | null {
  const { variables, operator, actions, next } = rule.source;
  const [variable] = variables ?? [];
  if (!variable || variables?.length !== 1 || variable.name !== 'TX' || variable.count || next || !operator || rule.skipAfter === null) return null;
  if (actions.some(({ name }) => name === 'setvar' || name === 'ctl')) return null;
  const level = variable.select && 'key' in variable.select ? levelNamed(variable.select.key, levels) : null;
  if (level === null || !/^\d$/.test(operator.argument)) return null;
  return compare(operator.name, level, Number(operator.argument), operator.negated);
}

function levelNamed(name: string, levels: Levels): number | null {
  if (name === 'executing_paranoia_level' || name === 'detection_paranoia_level') return levels.detection;
  return name === 'paranoia_level' || name === 'blocking_paranoia_level' ? levels.blocking : null;
}

function compare(operator: string, left: number, right: number, negated: boolean): boolean | null {
  switch (operator) {
    case 'lt': return left < right !== negated;
    case 'le': return left <= right !== negated;
    case 'gt': return left > right !== negated;
    case 'ge': return left >= right !== negated;
    case 'eq': return (left === right) !== negated;
    default: return null;
  }
}

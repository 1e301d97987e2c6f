import { compilePattern } from '../../../gateway/rules/pattern';
import type { VariableCall } from './syntax';
import type { Target, Transaction } from './transaction';
import { variableOf } from './variables';

/** The first argument of a rule, compiled: which values it looks at. */
export interface TargetList {
  /** The same for equal lists: their values are read once per request. */
  readonly index: number;
  readonly volatile: boolean;
  read(state: Transaction): readonly Target[];
}

type Keep = (target: Target) => boolean;

/** Compiles lists of variables; equal ones are one. */
export class TargetLists {
  private readonly known = new Map<string, TargetList>();

  get size(): number { return this.known.size; }

  /** Throws Unsupported and PatternError. */
  compile(calls: readonly VariableCall[]): TargetList {
    const key = JSON.stringify(calls);
    let list = this.known.get(key);
    if (!list) this.known.set(key, list = compileList(calls, this.known.size));
    return list;
  }
}

function compileList(calls: readonly VariableCall[], index: number): TargetList {
  const excluded = calls.filter(({ exclude }) => exclude).map((call) => ({ name: call.name, keep: selector(call) }));
  const parts = calls.filter(({ exclude }) => !exclude).map((call) => {
    const variable = variableOf(call.name);
    const keep = selector(call);
    const without = excluded.filter(({ name }) => name === call.name).map((other) => other.keep);
    const read = direct(call) ?? ((state: Transaction) => filtered(variable.read(state), call.select === null ? null : keep, without));
    return { volatile: variable.volatile, read: call.count ? counted(call, read) : read };
  });
  const [only] = parts;
  return {
    index, volatile: parts.some((part) => part.volatile),
    read: only && parts.length === 1 ? only.read : (state) => joined(parts, state),
  };
}

function joined(parts: readonly { read(state: Transaction): readonly Target[] }[], state: Transaction): Target[] {
  const targets: Target[] = [];
  for (const part of parts) for (const target of part.read(state)) targets.push(target);
  return targets;
}

function selector({ select }: VariableCall): Keep {
  if (select === null) return () => true;
  if ('key' in select) return ({ key }) => key.length === select.key.length && key.toLowerCase() === select.key;
  const pattern = compilePattern(select.pattern, { source: 'file', ignoreCase: true });
  return ({ key }) => pattern.test(key);
}

function filtered(targets: Target[], keep: Keep | null, without: readonly Keep[]): Target[] {
  if (keep === null && without.length === 0) return targets;
  return targets.filter((target) => (keep === null || keep(target)) && !without.some((other) => other(target)));
}

/** One value of TX by its name, without listing all of them. */
function direct({ name, select }: VariableCall): ((state: Transaction) => Target[]) | null {
  if (name !== 'TX' || select === null || !('key' in select)) return null;
  const { key } = select;
  return (state) => {
    const value = state.tx.get(key);
    return value === undefined ? [] : [{ collection: 'TX', key, text: state.texts.repeatedly(value) }];
  };
}

function counted(call: VariableCall, read: (state: Transaction) => readonly Target[]): (state: Transaction) => Target[] {
  const key = call.select && 'key' in call.select ? call.select.key : '';
  return (state) => [{ collection: call.name, key, text: state.texts.repeatedly(String(read(state).length)) }];
}

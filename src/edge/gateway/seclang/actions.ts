import { processorOf } from './body';
import { Unsupported } from './directives';
import type { Action } from './syntax';
import type { Transaction } from './transaction';
import { type Variable, variableOf } from './variables';

/** What an action does to the state of the request once its rule (or, for setvar, one value) matched. */
export type Effect = (state: Transaction) => void;

/** `setvar`: `score` is set where it adds to an anomaly score, so that a match knows what it weighs. */
export interface SetVar {
  readonly apply: Effect;
  readonly name: string;
  readonly score: { readonly level: number; readonly outbound: boolean; readonly amount: (state: Transaction) => number } | null;
}

/** Text with `%{TX.name}` and the like filled in. */
export type Macro = (state: Transaction) => string;

const anomalyScore = /^(?:(?:in|(out))bound_)?anomaly_score_pl([1-4])$/;

export function compileMacro(text: string): Macro {
  if (!text.includes('%{')) return () => text;
  const parts = text.split(/(%\{[^}]+\})/).filter((part) => part !== '').map((part): Macro => {
    const name = /^%\{([^}]+)\}$/.exec(part)?.[1];
    return name === undefined ? () => part : macroValue(name);
  });
  return (state) => parts.map((part) => part(state)).join('');
}

/** The first value of what is named: `TX.score`, `ARGS.name`, `MATCHED_VAR`. What is not known is empty. */
function macroValue(name: string): Macro {
  const [, collection = '', key] = /^([^.:]*)(?:[.:]([^]*))?$/.exec(name.toLowerCase()) ?? [];
  if (collection === 'tx') return (state) => state.tx.get(key ?? '') ?? '';
  const variable = knownVariable(collection.toUpperCase());
  if (!variable) return () => '';
  return (state) => variable.read(state).find((target) => key === undefined || target.key.toLowerCase() === key)?.text.value ?? '';
}

function knownVariable(name: string): Variable | null {
  try {
    return variableOf(name);
  } catch {
    return null;
  }
}

/** `tx.name=value`, `tx.name=+2`, `tx.name=-%{tx.x}`, `!tx.name`. Other collections keep nothing. */
export function compileSetVar(value: string): SetVar {
  const found = /^\s*(!?)([A-Za-z]+)\.([^=]+?)\s*(?:=([+-]?)([^]*))?$/.exec(value);
  if (!found) throw new Unsupported(`setvar ${value}`);
  const [, remove, collection = '', rawName = '', sign, given = '1'] = found;
  const macro = compileMacro(rawName.toLowerCase());
  if (collection.toLowerCase() !== 'tx') return { apply: () => undefined, name: '', score: null };
  const right = compileMacro(given);
  const amount = (state: Transaction) => (Number.parseInt(right(state), 10) || 0) * (sign === '-' ? -1 : 1);
  const level = sign === '+' ? anomalyScore.exec(rawName.toLowerCase()) : null;
  const apply: Effect = (state) => {
    const name = macro(state);
    if (remove) state.tx.delete(name);
    else if (sign) state.tx.set(name, String((Number.parseInt(state.tx.get(name) ?? '0', 10) || 0) + amount(state)));
    else state.tx.set(name, right(state));
  };
  return { apply, name: rawName.toLowerCase(), score: level ? { level: Number(level[2]), outbound: level[1] === 'out', amount } : null };
}

/** A `ctl` of contract gateway.md §4.7; those about logging do nothing here. Throws Unsupported. */
export function compileCtl({ value }: Action): Effect {
  const at = value.indexOf('=');
  const [name, argument] = [value.slice(0, at).trim().toLowerCase(), value.slice(at + 1).trim()];
  switch (name) {
    case 'ruleremovebyid': { const applies = byId(argument); return (state) => { state.removedRules.push(applies); }; }
    case 'ruleremovebytag': { const applies = byTag(argument); return (state) => { state.removedRules.push(applies); }; }
    case 'ruleremovetargetbyid': return removeTarget(argument, byId);
    case 'ruleremovetargetbytag': return removeTarget(argument, byTag);
    case 'forcerequestbodyvariable': return (state) => { state.forceRequestBody = argument.toLowerCase() === 'on'; };
    case 'requestbodyprocessor': return (state) => { state.processor = processorNamed(argument); };
    case 'ruleengine': return (state) => { state.engineOff = argument.toLowerCase() === 'off'; };
    case 'auditengine': case 'auditlogparts': case 'requestbodyaccess': case 'responsebodyaccess': case 'debugloglevel': return () => undefined;
    default: throw new Unsupported(`ctl ${name}`);
  }
}

function processorNamed(name: string): Transaction['processor'] {
  const upper = name.toUpperCase();
  return upper === 'XML' || upper === 'JSON' || upper === 'MULTIPART' || upper === 'URLENCODED' ? upper : processorOf(name);
}

type Applies = (id: number, tags: readonly string[]) => boolean;

function byId(argument: string): Applies {
  const [from, to] = argument.split('-').map(Number);
  if (from === undefined || !Number.isInteger(from)) throw new Unsupported(`rule ids ${argument}`);
  return (id) => id >= from && id <= (to ?? from);
}

function byTag(argument: string): Applies {
  return (_id, tags) => tags.includes(argument);
}

function removeTarget(argument: string, applying: (argument: string) => Applies): Effect {
  const [rules = '', target = ''] = argument.split(';');
  const colon = target.search(/[:.]/);
  const applies = applying(rules);
  const collection = (colon < 0 ? target : target.slice(0, colon)).toUpperCase();
  const key = colon < 0 ? null : target.slice(colon + 1).replace(/^'(.*)'$/, '$1').toLowerCase();
  return (state) => { state.removedTargets.push({ applies, collection, key }); };
}

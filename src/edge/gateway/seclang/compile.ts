import { compileCtl, compileMacro, compileSetVar, type Effect, type Macro, type SetVar } from './actions';
import { Unsupported } from './directives';
import { compileOperator, type Operator, type ReadPhrases } from './operators';
import { OperatorTable } from './operator-table';
import type { Disruptive, ParsedRule } from './rule';
import type { OperatorCall } from './syntax';
import { type TargetList, TargetLists } from './targets';
import { transformationIndex } from './transformations';

export interface Chain { readonly index: number; readonly steps: readonly number[] }

/** One rule of a chain, ready to run. `operator`: index in the table; `dynamic`: its argument holds macros. */
export interface Rule {
  readonly id: string;
  readonly number: number;
  readonly phase: number;
  readonly list: TargetList | null;
  readonly negated: boolean;
  readonly operator: number;
  /** Whether what the prefilter says of its values can rule it out. */
  readonly filtered: boolean;
  readonly dynamic: ((expanded: string) => Operator) | null;
  readonly argument: Macro;
  readonly chain: Chain;
  readonly capture: boolean;
  readonly multiMatch: boolean;
  readonly setVars: readonly SetVar[];
  readonly effects: readonly Effect[];
  readonly disruptive: Disruptive;
  readonly skipAfter: string | null;
  /** So many of the rules that follow are passed over. */
  readonly skip: number;
  readonly logged: boolean;
  readonly message: Macro;
  readonly severity: string | null;
  readonly tags: readonly string[];
  readonly paranoiaLevel: number;
  /** Rules that only add up what others found (Core Rule Set 949, 959, 980) are not reported. */
  readonly summing: boolean;
  readonly source: ParsedRule;
  readonly next: Rule | null;
}

const dynamicMax = 64;

/** Compiles rules of one directory: equal lists of variables, chains of transformations and operators are shared. */
export class Compiler {
  readonly operators = new OperatorTable();
  readonly lists = new TargetLists();
  private readonly chains = new Map<string, Chain>();
  constructor(private readonly phrases: (file: string) => ReadPhrases) {}

  get chainCount(): number { return this.chains.size; }

  /** Throws Unsupported when the engine cannot run it. */
  rule(parsed: ParsedRule): Rule {
    const { operator, variables } = parsed;
    const dynamic = operator?.argument.includes('%{') ?? false;
    const phrases = this.phrases(parsed.file);
    const list = variables ? this.lists.compile(variables) : null;
    const index = operator && !dynamic ? this.operators.add(operator, phrases, parsed.file, parsed.capture) : -1;
    return {
      id: parsed.id, number: Number(parsed.id), phase: parsed.phase, list, negated: operator?.negated ?? false, operator: index,
      filtered: list !== null && !list.volatile && index >= 0 && !(operator?.negated ?? false) && !parsed.multiMatch,
      dynamic: operator && dynamic ? expanding(operator, phrases, parsed.capture) : null, argument: compileMacro(operator?.argument ?? ''),
      chain: this.chain(parsed.transformations), capture: parsed.capture, multiMatch: parsed.multiMatch,
      setVars: parsed.actions.filter(({ name }) => name === 'setvar').map(({ value }) => compileSetVar(value)),
      effects: parsed.actions.filter(({ name }) => name === 'ctl').map(compileCtl),
      disruptive: parsed.disruptive, skipAfter: parsed.skipAfter, skip: parsed.skip, logged: parsed.logged, message: compileMacro(parsed.message),
      severity: parsed.severity, tags: parsed.tags, paranoiaLevel: levelOf(parsed), summing: /^(?:949|959|980)\d{3}$/.test(parsed.id),
      source: parsed, next: parsed.next ? this.rule(parsed.next) : null,
    };
  }

  private chain(names: readonly string[]): Chain {
    const key = names.join(',').toLowerCase();
    let chain = this.chains.get(key);
    if (!chain) {
      const steps = names.map((name) => transformationIndex(name) ?? unsupported(`transformation ${name}`));
      this.chains.set(key, chain = { index: this.chains.size, steps });
    }
    return chain;
  }
}

function unsupported(what: string): never {
  throw new Unsupported(what);
}

/** The operator for the argument as it is now; a few are remembered. */
function expanding(call: OperatorCall, phrases: ReadPhrases, capture: boolean): (expanded: string) => Operator {
  const known = new Map<string, Operator>();
  compileOperator(call.name, '0', phrases, capture);
  return (expanded) => {
    let operator = known.get(expanded);
    if (!operator) {
      if (known.size >= dynamicMax) known.clear();
      known.set(expanded, operator = compileOperator(call.name, expanded, phrases, capture));
    }
    return operator;
  };
}

/** The level says a tag, else the score that the rule adds to. */
function levelOf(rule: ParsedRule): number {
  for (let link: ParsedRule | null = rule; link; link = link.next) {
    const tag = link.tags.map((name) => /^paranoia-level\/([1-4])$/.exec(name)?.[1]).find((level) => level !== undefined);
    const score = link.actions.map(({ value }) => /anomaly_score_pl([1-4])=/i.exec(value)?.[1]).find((level) => level !== undefined);
    if (tag ?? score) return Number(tag ?? score);
  }
  return 1;
}


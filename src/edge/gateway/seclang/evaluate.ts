import type { Rule } from './compile';
import type { OperatorTable } from './operator-table';
import type { Program } from './program';
import { covers, isExcluded, type Settings } from './settings';
import type { Text } from './text';
import type { Target, Transaction } from './transaction';

/** A rule whose whole chain matched. `score` is what it added at its level. */
export interface Match { readonly rule: Rule; readonly message: string; readonly target: Target | null; readonly value: string; readonly score: number; readonly logOnly: boolean }

export interface Run {
  readonly operators: OperatorTable;
  readonly program: Program;
  readonly settings: Settings;
  readonly now: number;
  /** `performance.now()` after which evaluation ends. */
  readonly deadline: number;
}

/** Values of one list of variables, with their forms after each chain of transformations. */
interface Values { readonly targets: readonly Target[]; readonly forms: (Forms | undefined)[] }
/** `candidates`: operators that may match one of the texts; null until asked. */
interface Forms { readonly texts: readonly Text[]; candidates: Uint32Array | null }

/** The clock is read after so much work: a rule is 1, a value looked at 1 for each 16 characters. So no two expressions that are slow on a long value run between two looks. */
const checkEvery = 32;
const nothing: readonly string[] = [];
/** Of what a chain matched, these say less than what came before. */
const derived = /^(?:TX$|MATCHED_)/;

/** Runs rules over one request. */
export class Evaluation {
  readonly matches: Match[] = [];
  /** Sums per paranoia level, of requests and of responses. */
  readonly inbound = [0, 0, 0, 0, 0];
  readonly outbound = [0, 0, 0, 0, 0];
  denied = false;
  private values: (Values | undefined)[] = [];
  private allowed: 'all' | 'request' | null = null;
  private worked = 0;
  private over = false;
  private ruleScore = 0;
  private ruleTarget: Target | null = null;
  private ruleValue = '';

  private readonly place: { readonly path: string; readonly now: number };

  constructor(private readonly state: Transaction, private readonly run: Run) {
    this.place = { path: state.facts.path, now: run.now };
  }

  /** Runs a phase; false when the time is over before its end. */
  phase(number: number): boolean {
    const phase = this.run.program[number];
    if (!phase || this.state.engineOff || this.allowed === 'all' || (this.allowed === 'request' && number <= 2)) return true;
    this.values = [];
    this.state.collected.clear();
    this.worked = checkEvery;
    for (let at = 0; at < phase.rules.length; at += 1) {
      this.worked += 1;
      const rule = phase.rules[at];
      if (this.isOver()) return false;
      if (!rule || (rule.filtered && !this.mayMatch(rule)) || !this.top(rule)) continue;
      if (this.state.engineOff || this.denied || rule.disruptive.startsWith('allow')) {
        if (rule.disruptive === 'allow') this.allowed = 'all';
        if (rule.disruptive === 'allow:request') this.allowed = 'request';
        return true;
      }
      if (rule.skipAfter !== null) at = (phase.markers.get(rule.skipAfter) ?? phase.rules.length) - 1;
      at += rule.skip;
    }
    return true;
  }

  private isOver(): boolean {
    if (this.worked > checkEvery) {
      this.worked = 0;
      this.over ||= performance.now() > this.run.deadline;
    }
    return this.over;
  }

  /** One rule with its chain; true when all of it matched. */
  private top(rule: Rule): boolean {
    const { settings } = this.run;
    if (settings.disabled.has(rule.id) || this.removed(rule)) return false;
    if (isExcluded(settings, rule, null, this.place)) return false;
    this.ruleScore = 0;
    this.ruleTarget = null;
    this.ruleValue = '';
    if (this.state.matchedAll.length > 0) this.state.matchedAll = [];
    if (!this.matchesChain(rule)) return false;
    const logOnly = settings.logOnly.has(rule.id);
    if (rule.logged && !rule.summing) {
      this.matches.push({ rule, message: rule.message(this.state), target: this.ruleTarget, value: this.ruleValue, score: this.ruleScore, logOnly });
    }
    if (rule.disruptive === 'deny' && !rule.summing && !logOnly) this.denied = true;
    return true;
  }

  private removed(rule: Rule): boolean {
    return this.state.removedRules.length > 0 && this.state.removedRules.some((applies) => applies(rule.number, rule.tags));
  }

  private matchesChain(rule: Rule): boolean {
    if (!(rule.list ? this.matchesAny(rule) : this.always(rule))) return false;
    if (rule.next && !this.matchesChain(rule.next)) return false;
    for (const effect of rule.effects) effect(this.state);
    return true;
  }

  /** SecAction. */
  private always(rule: Rule): boolean {
    this.setVars(rule);
    return true;
  }

  private matchesAny(rule: Rule): boolean {
    const values = this.valuesOf(rule);
    if (values.targets.length === 0) return false;
    if (rule.multiMatch) return this.multiMatch(rule, values.targets);
    const forms = this.formsOf(rule, values);
    let any = false;
    for (let at = 0; at < forms.texts.length && !this.isOver(); at += 1) {
      const [target, text] = [values.targets[at], forms.texts[at]];
      if (target && text && this.holds(rule, text) && this.accept(rule, target, text)) any = true;
    }
    return any;
  }

  /** After each transformation that changes the value. */
  private multiMatch(rule: Rule, targets: readonly Target[]): boolean {
    let any = false;
    for (const target of targets) {
      if (this.isOver()) return any;
      let { text } = target;
      if (this.holds(rule, text) && this.accept(rule, target, text)) any = true;
      for (const step of rule.chain.steps) {
        const next = text.form(step);
        if (next !== text && this.holds(rule, next) && this.accept(rule, target, next)) any = true;
        text = next;
      }
    }
    return any;
  }

  private valuesOf({ list }: Rule): Values {
    if (!list) return { targets: [], forms: [] };
    if (list.volatile) return { targets: list.read(this.state), forms: [] };
    return this.values[list.index] ??= { targets: list.read(this.state), forms: [] };
  }

  private formsOf({ chain }: Rule, values: Values): Forms {
    let forms = values.forms[chain.index];
    if (!forms) {
      forms = values.forms[chain.index] = { texts: values.targets.map(({ text }) => transformed(text, chain.steps)), candidates: null };
      this.worked += forms.texts.length;
    }
    return forms;
  }

  /** False when no value of the rule can match: of most rules no more than this is looked at. */
  private mayMatch(rule: Rule): boolean {
    const values = this.valuesOf(rule);
    if (values.targets.length === 0) return false;
    const forms = this.formsOf(rule, values);
    return this.run.operators.mayMatch(rule.operator, forms.candidates ??= this.run.operators.candidates(forms.texts));
  }

  private holds(rule: Rule, text: Text): boolean {
    this.worked += 1 + (text.value.length >> 4);
    if (!rule.dynamic) return this.run.operators.matches(rule.operator, text) !== rule.negated;
    return rule.dynamic(rule.argument(this.state)).test(text.value) !== rule.negated;
  }

  /** A value matched: unless it is taken out, it is remembered and the rule's variables are set. */
  private accept(rule: Rule, target: Target, text: Text): boolean {
    const { state, run } = this;
    if (isExcluded(run.settings, rule, target, this.place)) return false;
    if (state.removedTargets.some(({ applies, collection, key }) => covers(collection, key, target) && applies(rule.number, rule.tags))) return false;
    const matched = { ...target, text };
    state.matched = matched;
    state.matchedAll.push(matched);
    if (!this.ruleTarget || !derived.test(target.collection)) {
      this.ruleTarget = target;
      this.ruleValue = text.value;
    }
    if (rule.capture) this.capture(rule, text);
    this.setVars(rule);
    return true;
  }

  private capture(rule: Rule, text: Text): void {
    const groups = rule.negated ? nothing : rule.dynamic ? rule.dynamic(rule.argument(this.state)).captures(text.value) : this.run.operators.captures(rule.operator, text);
    for (let at = 0; at < 10; at += 1) {
      const group = groups[at];
      if (group === undefined) this.state.tx.delete(String(at));
      else this.state.tx.set(String(at), group);
    }
  }

  /** A rule that is only logged adds to no score. */
  private setVars(rule: Rule): void {
    const logOnly = this.run.settings.logOnly.has(rule.id);
    for (const { apply, score, name } of rule.setVars) {
      if (logOnly && name.includes('score')) continue;
      if (score && !rule.summing) {
        const amount = score.amount(this.state);
        const sums = score.outbound ? this.outbound : this.inbound;
        sums[score.level] = (sums[score.level] ?? 0) + amount;
        this.ruleScore += amount;
      }
      apply(this.state);
    }
  }
}

function transformed(text: Text, steps: readonly number[]): Text {
  let form = text;
  for (const step of steps) form = form.form(step);
  return form;
}

import { type Directive, type Skipped, Unsupported } from './directives';
import type { Disruptive, Marker, ParsedRule } from './rule';
import { type Action, readActions, readOperator, readVariables, type VariableCall } from './syntax';

export interface ParsedRules {
  readonly items: readonly (ParsedRule | Marker)[];
  /** Rules that this engine cannot run. */
  readonly skipped: readonly Skipped[];
  /** Directives that mean nothing here. */
  readonly ignored: readonly Skipped[];
  readonly signature: string | null;
}

type Link = Omit<ParsedRule, 'next'> & { readonly chained: boolean };

/** Reads directives into rules, chains joined. `accept` compiles nothing yet but throws Unsupported for what cannot run. */
export function parseRules(directives: readonly Directive[], accept: (rule: ParsedRule) => void): ParsedRules {
  const reader = new Rules(accept, directives.flatMap((directive) => readUpdate(directive) ?? []));
  for (const directive of directives) reader.take(directive);
  return reader;
}

class Rules implements ParsedRules {
  readonly items: (ParsedRule | Marker)[] = [];
  readonly skipped: Skipped[] = [];
  readonly ignored: Skipped[] = [];
  signature: string | null = null;
  private readonly defaults = new Map<number, readonly Action[]>();
  private chain: Link[] = [];
  private broken: Skipped | null = null;
  constructor(private readonly accept: (rule: ParsedRule) => void, private readonly updates: readonly Update[]) {}

  take(directive: Directive): void {
    switch (directive.name.toLowerCase()) {
      case 'secrule': case 'secaction': return this.rule(directive);
      case 'secmarker': this.items.push({ marker: directive.args[0] ?? '' }); return;
      case 'secdefaultaction': return this.default(directive);
      case 'seccomponentsignature': this.signature ??= directive.args[0] ?? null; return;
      default: if (!readUpdate(directive)) this.ignored.push({ file: directive.file, line: directive.line, what: directive.name });
    }
  }

  private default(directive: Directive): void {
    const actions = readActions(directive.args[0] ?? '');
    this.defaults.set(phaseOf(actions, 2), actions);
  }

  private rule(directive: Directive): void {
    const actions = actionsOf(directive);
    const chained = actions.some(({ name }) => name === 'chain');
    try {
      this.chain.push({ ...this.link(directive, actions), chained });
    } catch (error) {
      if (!(error instanceof Unsupported)) throw error;
      this.broken ??= { file: directive.file, line: directive.line, what: error.message };
    }
    if (!chained) this.close();
  }

  private close(): void {
    const rule = this.chain.reduceRight<ParsedRule | null>((next, { chained: _chained, ...link }) => ({ ...link, next }), null);
    this.chain = [];
    let { broken } = this;
    this.broken = null;
    try {
      if (rule && !broken) this.accept(rule);
    } catch (error) {
      if (!(error instanceof Unsupported)) throw error;
      broken = { file: rule?.file ?? '', line: rule?.line ?? 0, what: `${rule?.id ?? ''}: ${error.message}` };
    }
    if (broken) this.skipped.push(broken);
    else if (rule) this.items.push(rule);
  }

  private link(directive: Directive, actions: readonly Action[]): Omit<Link, 'chained'> {
    const [head] = this.chain;
    const phase = head?.phase ?? phaseOf(actions, 2);
    const all = [...(head ? [] : this.defaults.get(phase) ?? []), ...actions];
    const last = (name: string) => all.findLast((action) => action.name === name)?.value ?? null;
    const isAction = directive.name.toLowerCase() === 'secaction';
    const id = head?.id ?? last('id') ?? '0';
    const updated = head ? [] : this.updates.filter(({ from, to }) => Number(id) >= from && Number(id) <= to).flatMap(({ variables }) => variables);
    return {
      id, phase, file: directive.file, line: directive.line,
      variables: isAction ? null : [...readVariables(directive.args[0] ?? ''), ...updated],
      operator: isAction ? null : readOperator(directive.args[1] ?? ''),
      transformations: transformationsOf(all), actions: all,
      message: last('msg') ?? '', logData: last('logdata'), severity: severityOf(last('severity')),
      tags: all.filter(({ name }) => name === 'tag').map(({ value }) => value),
      capture: last('capture') !== null, multiMatch: last('multimatch') !== null,
      disruptive: disruptiveOf(all), logged: !head && isLogged(all), skipAfter: last('skipafter'), skip: Math.max(0, Number(last('skip') ?? 0) || 0),
    };
  }
}

/** `SecRuleUpdateTargetById 942100-942190 "!REQUEST_COOKIES:x"`, by which the Core Rule Set 4 makes its exceptions. */
interface Update { readonly from: number; readonly to: number; readonly variables: readonly VariableCall[] }

function readUpdate({ name, args: [ids = '', variables = ''] }: Directive): Update | null {
  const range = /^(\d+)(?:-(\d+))?$/.exec(ids);
  if (name.toLowerCase() !== 'secruleupdatetargetbyid' || !range || !/^[!&|:.\w/()[\]?*+^$\\'-]+$/.test(variables)) return null;
  return { from: Number(range[1]), to: Number(range[2] ?? range[1]), variables: readVariables(variables) };
}

function actionsOf(directive: Directive): readonly Action[] {
  return readActions(directive.args[directive.name.toLowerCase() === 'secaction' ? 0 : 2] ?? '');
}

const phaseNames: Readonly<Record<string, number>> = { request: 2, response: 4, logging: 5 };

function phaseOf(actions: readonly Action[], otherwise: number): number {
  const value = actions.find(({ name }) => name === 'phase')?.value;
  if (value === undefined) return otherwise;
  const phase = phaseNames[value] ?? Number(value);
  return phase >= 1 && phase <= 5 ? phase : otherwise;
}

/** `t:none` drops what came before it. */
function transformationsOf(actions: readonly Action[]): string[] {
  const names = actions.filter(({ name }) => name === 't').map(({ value }) => value);
  return names.slice(names.findLastIndex((name) => name.toLowerCase() === 'none') + 1);
}

const severities = ['EMERGENCY', 'ALERT', 'CRITICAL', 'ERROR', 'WARNING', 'NOTICE', 'INFO', 'DEBUG'];

function severityOf(value: string | null): string | null {
  if (value === null) return null;
  return severities[Number(value)] ?? value.toUpperCase();
}

/** `block` is what SecDefaultAction says: with the Core Rule Set, score and go on. */
function disruptiveOf(actions: readonly Action[]): Disruptive {
  let found: Disruptive = 'pass';
  let otherwise: Disruptive = 'pass';
  for (const { name, value } of actions) {
    if (name === 'deny' || name === 'drop' || name === 'redirect') found = otherwise = 'deny';
    else if (name === 'pass') found = otherwise = 'pass';
    else if (name === 'block') found = otherwise;
    else if (name === 'allow') found = value === 'phase' ? 'allow:phase' : value === 'request' ? 'allow:request' : 'allow';
  }
  return found;
}

function isLogged(actions: readonly Action[]): boolean {
  return actions.findLast(({ name }) => name === 'log' || name === 'nolog')?.name !== 'nolog';
}

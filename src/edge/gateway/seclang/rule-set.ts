import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { PatternError } from '../../../gateway/rules/pattern';
import type { RuleDescription } from '../../../gateway/ports';
import { Compiler, type Rule } from './compile';
import { readDirectives, type Skipped, Unsupported } from './directives';
import { engineRules } from './engine-rules';
import type { ReadPhrases } from './operators';
import type { OperatorTable } from './operator-table';
import { parseRules } from './parse';
import { type Levels, type Program, programFor } from './program';
import type { Marker } from './rule';
import { RepeatedTexts } from './text';

/** Rules of one directory, compiled once; programs per pair of levels are made when first asked for. */
export interface RuleSet {
  /** E.g. `crs-3.3.4`. */
  readonly version: string;
  readonly operators: OperatorTable;
  readonly repeated: RepeatedTexts;
  readonly descriptions: readonly RuleDescription[];
  /** What could not be used, for the log and the operator. */
  readonly skipped: readonly Skipped[];
  readonly ignored: readonly Skipped[];
  readonly ruleCount: number;
  /** Rules with expressions that run on a prefix only, and those. */
  readonly unguarded: readonly string[];
  program(levels: Levels): Program;
}

/** A directory that cannot be used: unreadable, empty, or more than 1 % of its rules unknown to this engine. */
export class RuleSetRefused extends Error {
  constructor(message: string, readonly skipped: readonly Skipped[] = []) { super(message); }
}

const skippedMax = 0.01;

/** Loads `*.conf` and `*.data` of a directory, or of its `rules` folder. Throws RuleSetRefused. */
export function loadRuleSet(name: 'crs' | 'base', directory: string): RuleSet {
  const folder = ruleFolder(directory);
  const files = readdirSync(folder).filter((file) => file.endsWith('.conf')).sort();
  if (files.length === 0) throw new RuleSetRefused(`There are no rule files in ${directory}.`);
  const compiler = new Compiler(phrasesOf);
  const compiled = new Map<unknown, Rule>();
  const directives = [...readDirectives(engineRules, 'engine'), ...files.flatMap((file) => readDirectives(readFileSync(join(folder, file), 'latin1'), join(folder, file)))];
  const parsed = parseRules(directives, (rule) => { compiled.set(rule, compile(compiler, rule)); });
  const items = parsed.items.flatMap((item): (Rule | Marker)[] => {
    const rule = 'marker' in item ? item : compiled.get(item);
    return rule ? [rule] : [];
  });
  const total = compiled.size + parsed.skipped.length;
  if (parsed.skipped.length > total * skippedMax) throw new RuleSetRefused(`${parsed.skipped.length} of ${total} rules in ${directory} cannot be run.`, parsed.skipped);
  compiler.operators.close();
  return ruleSet(name, items, compiler, parsed);
}

function compile(compiler: Compiler, rule: Parameters<Compiler['rule']>[0]): Rule {
  try {
    return compiler.rule(rule);
  } catch (error) {
    if (error instanceof PatternError) throw new Unsupported(`expression: ${error.message}`);
    throw error;
  }
}

function ruleSet(name: string, items: readonly (Rule | Marker)[], compiler: Compiler, parsed: ReturnType<typeof parseRules>): RuleSet {
  const programs = new Map<string, Program>();
  const rules = items.flatMap((item) => ('marker' in item ? [] : [item]));
  return {
    version: `${name}-${parsed.signature?.split('/')[1]?.split(/\s/)[0] ?? 'unknown'}`, operators: compiler.operators, repeated: new RepeatedTexts(),
    descriptions: rules.filter((rule) => rule.logged && rule.source.message !== '' && !rule.summing).map(describe),
    skipped: parsed.skipped, ignored: parsed.ignored, ruleCount: rules.length,
    unguarded: rules.flatMap(links).flatMap(({ id, operator }) => {
      const pattern = compiler.operators.all[operator]?.pattern;
      return pattern?.guard === 'prefix' ? [`${id} ${pattern.source}`] : [];
    }),
    program: (levels) => {
      const key = `${levels.blocking}/${levels.detection}`;
      let program = programs.get(key);
      if (!program) programs.set(key, program = programFor(items, levels));
      return program;
    },
  };
}

/** A rule and the following ones of its chain. */
function links(rule: Rule): Rule[] {
  return rule.next ? [rule, ...links(rule.next)] : [rule];
}

function describe(rule: Rule): RuleDescription {
  return { id: rule.id, message: rule.source.message, severity: rule.severity, paranoiaLevel: rule.paranoiaLevel, phase: rule.phase, tags: [...rule.tags] };
}

function ruleFolder(directory: string): string {
  const inner = join(directory, 'rules');
  try {
    return statSync(inner).isDirectory() ? inner : directory;
  } catch {
    return directory;
  }
}

/** Files of phrases stand beside the rule file; one phrase a line, `#` begins a comment. Names with folders are refused. */
function phrasesOf(file: string): ReadPhrases {
  return (name) => {
    if (basename(name) !== name) throw new Unsupported(`file ${name}`);
    try {
      return readFileSync(join(dirname(file), name), 'latin1').split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
    } catch {
      throw new Unsupported(`file ${name} cannot be read`);
    }
  };
}

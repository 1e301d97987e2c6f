import { z } from 'zod';
import { text } from '../../core/fields';
import { countryCodes } from '../rules/countries';
import { parseNetwork } from '../rules/networks';

/** Conditions of rules (contract gateway.md §4.1). What a leaf compares, and with what. */
export const fieldsOf = {
  ip: ['ip'],
  string: ['country', 'host', 'path', 'rawPath', 'query', 'method', 'scheme', 'userAgent', 'referer', 'contentType', 'httpVersion', 'tlsVersion', 'header', 'cookie', 'arg'],
  number: ['asn', 'contentLength', 'bodySize'],
  boolean: ['isVerifiedBot'],
} as const;
export const matchFields = [...fieldsOf.ip, ...fieldsOf.string, ...fieldsOf.number, ...fieldsOf.boolean] as const;
export type MatchKind = keyof typeof fieldsOf;
export type MatchField = (typeof matchFields)[number];
const keyed: readonly MatchField[] = ['header', 'cookie', 'arg'];

export const opsOf = {
  ip: ['eq', 'ne', 'in', 'not_in'],
  string: ['eq', 'ne', 'in', 'not_in', 'contains', 'starts_with', 'ends_with', 'matches', 'wildcard', 'exists'],
  number: ['eq', 'ne', 'in', 'not_in', 'gt', 'lt'],
  boolean: ['eq'],
} as const satisfies Record<MatchKind, readonly string[]>;
export type MatchOp = (typeof opsOf)[MatchKind][number];

export type MatchLeaf = {
  field: MatchField; op: MatchOp;
  /** A list for `in` and `not_in`; true for `exists`. */
  value: string | number | boolean | string[] | number[];
  /** Of header (lower case), cookie and arg. */
  key?: string;
  /** Absent: false. */
  ignoreCase?: true;
};
export type Match = { all: Match[] } | { any: Match[] } | { not: Match } | MatchLeaf;

export const matchDepthMax = 5;
export const matchLeavesMax = 64;
export const patternMax = 512;
const stringMax = 1_024;
const valuesMax = 1_000;

export function kindOf(field: MatchField): MatchKind {
  if (field === 'ip') return 'ip';
  if (field === 'isVerifiedBot') return 'boolean';
  return fieldsOf.number.some((known) => known === field) ? 'number' : 'string';
}

/** Every leaf of a condition with its path, in order. */
export function leavesOf(match: Match, path: readonly (string | number)[] = []): { leaf: MatchLeaf; path: readonly (string | number)[] }[] {
  if ('all' in match) return match.all.flatMap((child, i) => leavesOf(child, [...path, 'all', i]));
  if ('any' in match) return match.any.flatMap((child, i) => leavesOf(child, [...path, 'any', i]));
  if ('not' in match) return leavesOf(match.not, [...path, 'not']);
  return [{ leaf: match, path }];
}

const value = z.union([text, z.number(), z.boolean(), z.array(text), z.array(z.number())], 'must be a text, a number, true or false, or a list of texts or of numbers');
const leafFields = {
  field: z.enum(matchFields).optional(),
  op: z.enum([...opsOf.string, 'gt', 'lt']).optional(),
  value: value.optional().meta({ description: 'What the field is compared with; a list for in and not_in; not needed for exists.' }),
  key: text.pipe(z.string().min(1, 'must not be empty').max(128, 'must be at most 128 characters')).optional().meta({ description: 'Name of the header, cookie or argument.' }),
  ignoreCase: z.boolean().optional(),
};
type Given = {
  all?: unknown; any?: unknown; not?: unknown; field?: MatchField | undefined; op?: MatchOp | undefined; value?: z.infer<typeof value> | undefined;
  key?: string | undefined; ignoreCase?: boolean | undefined;
};

/** Nested at most `matchDepthMax` deep: one schema per level, so that no body is deeper than the stack. */
function nodeAt(level: number): z.ZodType<Match> {
  const child = level < matchDepthMax ? nodeAt(level + 1) : null;
  const tooDeep = z.never(`conditions are nested at most ${matchDepthMax} deep`).optional();
  const children = child ? z.array(child).min(1, 'must hold at least one condition').max(64, 'must hold at most 64 conditions').optional() : tooDeep;
  return z.strictObject({ all: children, any: children, not: child ? child.optional() : tooDeep, ...leafFields })
    .meta({ id: level === 1 ? 'GatewayMatch' : `GatewayMatch${level}`, description: 'Exactly one of all, any, not, or a comparison of field, op and value.' })
    .transform((given, context): Match => toMatch(given, context) ?? z.NEVER);
}

function toMatch(given: { all?: Match[] | undefined; any?: Match[] | undefined; not?: Match | undefined } & Given, context: z.RefinementCtx): Match | null {
  const isLeaf = given.field !== undefined || given.op !== undefined || given.value !== undefined || given.key !== undefined || given.ignoreCase !== undefined;
  const forms = [given.all, given.any, given.not].filter((form) => form !== undefined).length + (isLeaf ? 1 : 0);
  if (forms !== 1) {
    context.addIssue({ code: 'custom', message: 'must be exactly one of all, any, not, or a comparison with field, op and value' });
    return null;
  }
  if (given.all) return { all: given.all };
  if (given.any) return { any: given.any };
  return given.not ? { not: given.not } : toLeaf(given, context);
}

function toLeaf({ field, op, value: raw, key, ignoreCase }: Given, context: z.RefinementCtx): MatchLeaf | null {
  const fault = (at: string, message: string): null => {
    context.addIssue({ code: 'custom', path: [at], message });
    return null;
  };
  if (field === undefined) return fault('field', 'is required');
  if (op === undefined) return fault('op', 'is required');
  const kind = kindOf(field);
  if (!opsOf[kind].some((known) => known === op)) return fault('op', `must be one of ${opsOf[kind].join(', ')} for ${field}`);
  if (keyed.includes(field) !== (key !== undefined)) return fault('key', key === undefined ? `is required for ${field}` : `belongs to ${keyed.join(', ')} only`);
  if (ignoreCase && kind !== 'string') return fault('ignoreCase', `does not apply to ${field}`);
  const checked = op === 'exists' ? existence(raw) : Array.isArray(raw) ? listOf(field, op, raw) : single(field, op, raw);
  if ('fault' in checked) return fault('value', checked.fault);
  return { field, op, value: checked.value, ...(key === undefined ? {} : { key: field === 'header' ? key.toLowerCase() : key }), ...(ignoreCase ? { ignoreCase } : {}) };
}

type Checked<T> = { value: T } | { fault: string };

function existence(raw: Given['value']): Checked<true> {
  return raw === undefined || raw === true ? { value: true } : { fault: 'must be true; wrap the condition in not for the contrary' };
}

function listOf(field: MatchField, op: MatchOp, raw: readonly (string | number)[]): Checked<string[] | number[]> {
  if (op !== 'in' && op !== 'not_in') return { fault: `must not be a list for ${op}` };
  if (raw.length === 0 || raw.length > valuesMax) return { fault: `must hold 1 to ${valuesMax} values` };
  const texts: string[] = [];
  const numbers: number[] = [];
  for (const item of raw) {
    const checked = one(field, 'eq', item);
    if ('fault' in checked) return checked;
    if (typeof checked.value === 'string') texts.push(checked.value);
    if (typeof checked.value === 'number') numbers.push(checked.value);
  }
  return { value: numbers.length > 0 ? [...new Set(numbers)] : [...new Set(texts)] };
}

function single(field: MatchField, op: MatchOp, raw: string | number | boolean | undefined): Checked<string | number | boolean> {
  if (raw === undefined) return { fault: 'is required' };
  return op === 'in' || op === 'not_in' ? { fault: `must be a list for ${op}` } : one(field, op, raw);
}

function one(field: MatchField, op: MatchOp, raw: string | number | boolean): Checked<string | number | boolean> {
  const kind = kindOf(field);
  if (kind === 'boolean') return typeof raw === 'boolean' ? { value: raw } : { fault: 'must be true or false' };
  if (kind === 'number') return typeof raw === 'number' && Number.isSafeInteger(raw) && raw >= 0 ? { value: raw } : { fault: 'must be a whole number, 0 or more' };
  if (typeof raw !== 'string') return { fault: 'must be a text' };
  return kind === 'ip' ? networkOf(raw) : textOf(field, op, raw);
}

function networkOf(raw: string): Checked<string> {
  return parseNetwork(raw) ? { value: raw } : { fault: 'must be an IP address or a CIDR network' };
}

/** Requests carry hosts in lower case, methods and countries in upper case: what is compared whole is kept so. */
function textOf(field: MatchField, op: MatchOp, raw: string): Checked<string> {
  if (op === 'matches') return raw.length > 0 && raw.length <= patternMax ? { value: raw } : { fault: `must be a pattern of 1 to ${patternMax} characters` };
  if (raw.length > stringMax) return { fault: `must be at most ${stringMax} characters` };
  if (raw === '' && op !== 'eq' && op !== 'ne') return { fault: 'must not be empty' };
  const kept = field === 'country' || field === 'method' ? raw.toUpperCase() : field === 'host' || field === 'scheme' ? raw.toLowerCase() : raw;
  if (field === 'country' && (op === 'eq' || op === 'ne') && !countryCodes.has(kept)) return { fault: 'must be a country of ISO 3166-1 alpha-2' };
  return { value: kept };
}

/** A condition of at most 64 comparisons. */
export const matchSchema = nodeAt(1).refine((match) => leavesOf(match).length <= matchLeavesMax, `a condition holds at most ${matchLeavesMax} comparisons`);

import { compilePattern, type CompiledPattern } from '../../../../gateway/rules/pattern';
import { Unsupported } from '../directives';
import { detectSqli } from '../sqli/detect';
import { detectXss } from '../xss/detect';
import { byteRange, isBadUrlEncoding, isBadUtf8 } from './encoding';
import { addressList } from './addresses';

/** Decides about one value. Pure. `captures`: what `capture` puts into TX.0 to TX.9. */
export interface Operator {
  test(value: string): boolean;
  captures(value: string): readonly (string | undefined)[];
  /** In lower case: without any of them a value (in lower case) cannot match; null when every value must be looked at. */
  readonly literals: readonly string[] | null;
  /** A word of `literals` in the value is already the match. */
  readonly literalsDecide: boolean;
  readonly pattern: CompiledPattern | null;
}

/** What an operator's argument may name: files of phrases beside the rule file. */
export type ReadPhrases = (name: string) => readonly string[];

const plain = (test: (value: string) => boolean, literals: readonly string[] | null = null): Operator => ({
  test, captures: (value) => [value], literals: literals?.every((word) => word !== '') ? literals : null, literalsDecide: false, pattern: null,
});

const integer = (value: string): number => {
  const number = Number.parseInt(value, 10);
  return Number.isNaN(number) ? 0 : number;
};

const compare = (holds: (value: number, argument: number) => boolean) => (argument: string): Operator => {
  const right = integer(argument);
  return plain((value) => holds(integer(value), right));
};

const make: Readonly<Record<string, (argument: string, phrases: ReadPhrases, capture: boolean) => Operator>> = {
  rx: (argument, _phrases, capture) => onPattern(argument, capture),
  pm: (argument) => onPhrases((argument.match(/(?:\|[^|]*\||\S)+/g) ?? []).map(binaryPhrase)),
  pmfromfile: (argument, phrases) => onPhrases(argument.split(/\s+/).flatMap((name) => phrases(name))),
  eq: compare((value, argument) => value === argument),
  lt: compare((value, argument) => value < argument),
  le: compare((value, argument) => value <= argument),
  gt: compare((value, argument) => value > argument),
  ge: compare((value, argument) => value >= argument),
  streq: (argument) => plain((value) => value === argument, [argument.toLowerCase()]),
  within: (argument) => plain((value) => argument.includes(value)),
  contains: (argument) => plain((value) => value.includes(argument), [argument.toLowerCase()]),
  beginswith: (argument) => plain((value) => value.startsWith(argument), [argument.toLowerCase()]),
  endswith: (argument) => plain((value) => value.endsWith(argument), [argument.toLowerCase()]),
  ipmatch: (argument) => plain(addressList(argument.split(/[\s,]+/).filter(Boolean))),
  ipmatchfromfile: (argument, phrases) => plain(addressList(phrases(argument))),
  validatebyterange: (argument) => plain(byteRange(argument)),
  validateutf8encoding: () => plain(isBadUtf8),
  validateurlencoding: () => plain(isBadUrlEncoding),
  unconditionalmatch: () => plain(() => true),
  nomatch: () => plain(() => false),
  detectsqli: () => detector(detectSqli),
  detectxss: () => plain(detectXss),
};

const aliases: Readonly<Record<string, string>> = { pmf: 'pmfromfile', ipmatchf: 'ipmatchfromfile', strmatch: 'contains' };

/** Throws Unsupported for an operator that is not of contract gateway.md §4.7, PatternError for an expression that cannot be read. */
export function compileOperator(name: string, argument: string, phrases: ReadPhrases, capture: boolean): Operator {
  const build = make[aliases[name] ?? name];
  if (!build) throw new Unsupported(`operator @${name}`);
  return build(argument, phrases, capture);
}

function onPattern(source: string, capture: boolean): Operator {
  const pattern = compilePattern(source, { source: 'file', captures: capture });
  return { test: pattern.test, captures: (value) => pattern.exec(value) ?? [], literals: pattern.literals, literalsDecide: false, pattern };
}

/** Phrases without regard to case; the prefilter finds them, so a hit is the match. */
function onPhrases(phrases: readonly string[]): Operator {
  const words = [...new Set(phrases.map((phrase) => phrase.toLowerCase()))];
  const found = (value: string) => {
    const lower = value.toLowerCase();
    return words.find((word) => lower.includes(word));
  };
  return { test: (value) => found(value) !== undefined, captures: (value) => [found(value)], literals: words, literalsDecide: true, pattern: null };
}

/** `|41 42|` are bytes. */
function binaryPhrase(phrase: string): string {
  return phrase.replace(/\|((?:[0-9a-fA-F]{2}\s?)+)\|/g, (_all, bytes: string) => Buffer.from(bytes.replace(/\s/g, ''), 'hex').toString('latin1'));
}

function detector(detect: (value: string) => string | null): Operator {
  return { ...plain((value) => detect(value) !== null), captures: (value) => [detect(value) ?? undefined] };
}

import { WordFinder } from './aho-corasick';
import { compileOperator, type Operator, type ReadPhrases } from './operators';
import type { OperatorCall } from './syntax';
import type { Text } from './text';

/** Longer values are looked at in windows that overlap, so that no expression sees more at once. */
const windowLength = 8_192;
const windowOverlap = 512;
const warmValues = ['hello world', "1' or <a href=x onerror=\"f(1)\">;cat /etc/x && $(id) ${a} ../.. union select"];
const windowed = new Set(['rx', 'detectsqli', 'detectxss']);

/**
 * All operators of a rule set whose argument is constant. Their results belong to the value alone, so each is found once per value; one pass over
 * the value finds the words of all of them and rules most of them out. What is known of a value are two sets of operators, one bit each: first
 * those that may match and must still be asked, then those that match.
 */
export class OperatorTable {
  private readonly operators: Operator[] = [];
  private readonly windows: boolean[] = [];
  private readonly known = new Map<string, number>();
  private finder: WordFinder | null = null;
  private words = 0;
  private start = new Uint32Array(0);

  /** Index of the operator. Throws Unsupported and PatternError. */
  add(call: OperatorCall, phrases: ReadPhrases, scope: string, capture: boolean): number {
    const key = JSON.stringify([call.name, call.argument, call.name.includes('file') ? scope : '', capture]);
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const index = this.operators.push(compileOperator(call.name, call.argument, phrases, capture)) - 1;
    this.windows.push(windowed.has(call.name));
    this.known.set(key, index);
    return index;
  }

  /** After the last `add`. */
  close(): void {
    this.words = (this.operators.length + 31) >>> 5;
    this.start = new Uint32Array(2 * this.words);
    this.operators.forEach(({ literals }, index) => { if (!literals) this.start[index >>> 5] = (this.start[index >>> 5] ?? 0) | (1 << (index & 31)); });
    this.finder = new WordFinder(this.operators.flatMap(({ literals, literalsDecide }, index) => (literals ?? []).map((word) => ({ word, bit: literalsDecide ? index + 32 * this.words : index }))));
  }

  /** Compiles every expression now: V8 does so at the first use, which would be paid by the first requests. */
  warm(): void {
    for (const { test } of this.operators) for (const value of warmValues) for (let times = 0; times < 3; times += 1) test(value);
  }

  /** Which operators may match one of the texts: for `mayMatch`. */
  candidates(texts: readonly Text[]): Uint32Array {
    const { words } = this;
    const union = new Uint32Array(words);
    for (const text of texts) {
      const found = this.found(text);
      for (let at = 0; at < words; at += 1) union[at] = (union[at] ?? 0) | (found[at] ?? 0) | (found[at + words] ?? 0);
    }
    return union;
  }

  mayMatch(index: number, candidates: Uint32Array): boolean {
    return ((candidates[index >>> 5] ?? 0) & (1 << (index & 31))) !== 0;
  }

  matches(index: number, text: Text): boolean {
    const found = this.found(text);
    const [at, bit] = [index >>> 5, 1 << (index & 31)];
    if (((found[at + this.words] ?? 0) & bit) !== 0) return true;
    if (((found[at] ?? 0) & bit) === 0) return false;
    found[at] = (found[at] ?? 0) & ~bit;
    if (!this.test(index, text.value)) return false;
    found[at + this.words] = (found[at + this.words] ?? 0) | bit;
    return true;
  }

  captures(index: number, text: Text): readonly (string | undefined)[] {
    const operator = this.operators[index];
    if (!operator) return [];
    const window = this.windowsOf(index, text.value).find((part, _at, all) => all.length === 1 || operator.test(part));
    return window === undefined ? [] : operator.captures(window);
  }

  /** Every operator with an expression, for the list of what is not guarded and for benchmarks. */
  get all(): readonly Operator[] { return this.operators; }

  private found(text: Text): Uint32Array {
    if (text.found) return text.found;
    text.found = this.start.slice();
    this.finder?.scan(text.value, text.found);
    return text.found;
  }

  private test(index: number, value: string): boolean {
    const operator = this.operators[index];
    if (!operator) return false;
    return value.length <= windowLength ? operator.test(value) : this.windowsOf(index, value).some((part) => operator.test(part));
  }

  private windowsOf(index: number, value: string): readonly string[] {
    if (value.length <= windowLength || !this.windows[index]) return [value];
    const step = windowLength - windowOverlap;
    return Array.from({ length: Math.ceil((value.length - windowOverlap) / step) }, (_, at) => value.slice(at * step, at * step + windowLength));
  }
}

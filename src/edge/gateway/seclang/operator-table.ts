import { WordFinder } from './aho-corasick';
import { compileOperator, type Operator, type ReadPhrases } from './operators';
import type { OperatorCall } from './syntax';
import { matches, misses, type Text, unknown } from './text';

/** Longer values are looked at in windows that overlap, so that no expression sees more at once. */
const windowLength = 8_192;
const windowOverlap = 512;
const warmValues = ['hello world', "1' or <a href=x onerror=\"f(1)\">;cat /etc/x && $(id) ${a} ../.. union select"];
const windowed = new Set(['rx', 'detectsqli', 'detectxss']);

/**
 * All operators of a rule set whose argument is constant. Their results belong to the value alone, so each is found once per value; one pass over
 * the value finds the words of all of them and rules most of them out.
 */
export class OperatorTable {
  private readonly operators: Operator[] = [];
  private readonly windows: boolean[] = [];
  private readonly known = new Map<string, number>();
  private finder: WordFinder | null = null;
  private start = new Uint8Array(0);
  private marks = new Uint8Array(0);

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
    this.finder = new WordFinder(this.operators.flatMap(({ literals }, owner) => (literals ?? []).map((word) => ({ word, owner }))));
    this.start = Uint8Array.from(this.operators, ({ literals }) => (literals ? misses : unknown));
    this.marks = Uint8Array.from(this.operators, ({ literalsDecide }) => (literalsDecide ? matches : unknown));
  }

  /** Compiles every expression now: V8 does so at the first use, which would be paid by the first requests. */
  warm(): void {
    for (const { test } of this.operators) for (const value of warmValues) for (let times = 0; times < 3; times += 1) test(value);
  }

  /** What is known of every operator; those still `unknown` must be asked. */
  results(text: Text): Uint8Array {
    return text.results ??= this.look(text.value);
  }

  matches(index: number, text: Text): boolean {
    const results = this.results(text);
    if (results[index] === unknown) results[index] = this.ask(index, text.value) ? matches : misses;
    return results[index] === matches;
  }

  captures(index: number, text: Text): readonly (string | undefined)[] {
    return this.operators[index]?.captures(text.value) ?? [];
  }

  /** Every operator with an expression, for the list of what is not guarded and for benchmarks. */
  get all(): readonly Operator[] { return this.operators; }

  private look(value: string): Uint8Array {
    const results = this.start.slice();
    this.finder?.scan(value, results, this.marks);
    return results;
  }

  private ask(index: number, value: string): boolean {
    const operator = this.operators[index];
    if (!operator) return false;
    if (value.length <= windowLength || !this.windows[index]) return operator.test(value);
    for (let at = 0; at < value.length; at += windowLength - windowOverlap) {
      if (operator.test(value.slice(at, at + windowLength))) return true;
    }
    return false;
  }
}

import { argumentsMax, depthMax, type Excess, type Pair } from './types';

export interface JsonArguments { readonly args: readonly Pair[]; readonly error: string | null; readonly excess: readonly Excess[] }

/**
 * Every scalar as an argument named by its path (`json.user.array_0`), as ModSecurity 3 names them; repeated keys all count. A body cut off by the
 * inspection limit (`complete` false) gives what stands before the cut. Text is latin1 bytes. `isSequence`: documents may follow each other, as lines.
 */
export function parseJson(text: string, complete: boolean, isSequence = false): JsonArguments {
  const reader = new JsonReader(text.startsWith(byteOrderMark) ? text.slice(byteOrderMark.length) : text);
  let error: string | null = null;
  try {
    do reader.document(); while (isSequence && !reader.isAtEnd);
    reader.end();
  } catch (thrown) {
    if (!(thrown instanceof JsonFault)) throw thrown;
    if (complete || !thrown.atEnd) error = thrown.message;
  }
  return { args: reader.args, error: reader.excess.size > 0 ? null : error, excess: [...reader.excess] };
}

/** RFC 8259 §8.1: may be passed over. */
const byteOrderMark = '\xef\xbb\xbf';

class JsonFault extends Error {
  constructor(message: string, readonly atEnd: boolean) { super(message); }
}

class JsonReader {
  readonly args: Pair[] = [];
  readonly excess = new Set<Excess>();
  private at = 0;
  constructor(private readonly text: string) {}

  document(): void {
    this.space();
    if (this.at >= this.text.length) return;
    this.value('json', 1);
    this.space();
  }

  get isAtEnd(): boolean { return this.at >= this.text.length; }

  end(): void {
    if (!this.isAtEnd) throw this.fault('something follows the document');
  }

  private value(name: string, depth: number): void {
    if (depth > depthMax) { this.excess.add('depth'); throw this.fault('nested too deeply'); }
    const char = this.text.charAt(this.at);
    if (char === '{') return this.members(name, depth);
    if (char === '[') return this.items(name, depth);
    if (char === '"') return this.put(name, this.string());
    const scalar = this.match(/true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    if (scalar === null) throw this.fault('a value is expected');
    this.put(name, scalar === 'null' ? '' : scalar);
  }

  private members(name: string, depth: number): void {
    this.at += 1;
    this.space();
    if (this.take('}')) return;
    do {
      this.space();
      const key = this.string();
      this.space();
      this.need(':');
      this.space();
      this.value(`${name}.${key}`, depth + 1);
      this.space();
    } while (this.take(','));
    this.need('}');
  }

  private items(name: string, depth: number): void {
    this.at += 1;
    this.space();
    if (this.take(']')) return;
    let index = 0;
    do {
      this.space();
      this.value(`${name}.array_${index}`, depth + 1);
      index += 1;
      this.space();
    } while (this.take(','));
    this.need(']');
  }

  private put(name: string, value: string): void {
    if (this.args.length === argumentsMax) { this.excess.add('arguments'); throw this.fault('too many values'); }
    this.args.push({ name, value });
  }

  private string(): string {
    const start = this.at;
    if (this.text.charAt(start) !== '"') throw this.fault('a string is expected');
    let end = start + 1;
    for (let escaped = false; ; end += 1) {
      if (end >= this.text.length) { this.at = end; throw this.fault('a string is not closed'); }
      const char = this.text.charCodeAt(end);
      if (escaped) escaped = false;
      else if (char === 0x5c) escaped = true;
      else if (char === 0x22) break;
      else if (char < 0x20) throw this.fault('a control character stands in a string');
    }
    this.at = end + 1;
    const raw = this.text.slice(start + 1, end);
    return raw.includes('\\') ? this.unescaped(raw) : raw;
  }

  private unescaped(raw: string): string {
    return raw.replace(/\\(?:((?:u[dD][89abAB][0-9a-fA-F]{2}\\)?u[0-9a-fA-F]{4})|(["\\/bfnrt])|[^])/g, (all, code: string | undefined, char: string | undefined) => {
      if (char !== undefined) return char === '"' || char === '\\' || char === '/' ? char : controls[char] ?? '';
      if (code === undefined) throw this.fault(`the escape ${all} is not known`);
      const units = [...code.matchAll(/u([0-9a-fA-F]{4})/g)].map((unit) => Number.parseInt(unit[1] ?? '', 16));
      return Buffer.from(String.fromCharCode(...units), 'utf8').toString('latin1');
    });
  }

  private space(): void { this.match(/[ \t\r\n]+/y); }

  private take(char: string): boolean {
    if (this.text.charAt(this.at) !== char) return false;
    this.at += 1;
    return true;
  }

  private need(char: string): void {
    if (!this.take(char)) throw this.fault(`${char} is expected`);
  }

  private match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (!found) return null;
    this.at = pattern.lastIndex;
    return found[0];
  }

  /** Near the end a fault may be the cut itself: `tru`, `"a` or `-`. */
  private fault(message: string): JsonFault { return new JsonFault(message, this.at >= this.text.length - 8); }
}

const controls: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

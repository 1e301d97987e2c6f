import { escapeClasses, foldCase, invertRanges, joinRanges, type Node, PatternError, posixClasses, type Range } from './tree';

/** `dialect`: `pcre` reads `.` as any character and `^ $` at lines, as ModSecurity 3 compiles; `user` as RegExp does without flags. */
export interface ReadOptions {
  readonly dialect: 'pcre' | 'user';
  readonly ignoreCase: boolean;
}

interface Flags { readonly i: boolean; readonly s: boolean; readonly x: boolean }

const depthMax = 60;
const countMax = 1_000;
const controls: ReadonlyMap<string, number> = new Map([['n', 10], ['r', 13], ['t', 9], ['f', 12], ['a', 7], ['e', 27], ['0', 0]]);

/** Reads a regular expression as PCRE writes them: inline flags, POSIX classes and possessive marks are resolved into the tree. */
export function parsePattern(source: string, options: ReadOptions): { tree: Node; references: boolean; multiline: boolean } {
  const reader = new Reader(source, options.dialect);
  const tree = reader.choice({ i: options.ignoreCase, s: options.dialect === 'pcre', x: false }, 0);
  if (!reader.done) throw new PatternError('a parenthesis is closed that was never opened');
  return { tree, references: reader.references, multiline: options.dialect === 'pcre' && !(reader.anchoredAtText && !reader.anchoredAtLines) };
}

class Reader {
  references = false;
  /** `\A`, `\z`: where a pattern has no `^` and `$` besides, they can be told from those. */
  anchoredAtText = false;
  anchoredAtLines = false;
  private at = 0;
  constructor(private readonly text: string, private readonly dialect: ReadOptions['dialect']) {}

  get done(): boolean { return this.at >= this.text.length; }

  choice(outer: Flags, depth: number): Node {
    if (depth > depthMax) throw new PatternError('groups are nested too deeply');
    const options: Node[] = [];
    let flags = outer;
    for (;;) {
      const parts: Node[] = [];
      while (!this.done && !'|)'.includes(this.peek())) {
        const change = this.inlineFlags(flags);
        if (change) flags = change;
        else if (!this.skipped(flags)) parts.push(this.quantified(this.atom(flags, depth)));
      }
      const only = parts.length === 1 ? parts[0] : undefined;
      options.push(only ?? { kind: 'sequence', parts });
      if (!this.take('|')) break;
    }
    const single = options.length === 1 ? options[0] : undefined;
    return single ?? { kind: 'choice', options };
  }

  private peek(ahead = 0): string { return this.text.charAt(this.at + ahead); }

  private take(expected: string): boolean {
    if (!this.text.startsWith(expected, this.at)) return false;
    this.at += expected.length;
    return true;
  }

  private match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  private inlineFlags(flags: Flags): Flags | null {
    const found = this.match(/\(\?([imsx]*)(?:-([imsx]+))?\)/y);
    return found ? changed(flags, found[1] ?? '', found[2] ?? '') : null;
  }

  /** Comments, and white space in extended mode. */
  private skipped(flags: Flags): boolean {
    if (this.match(/\(\?#[^)]*\)/y)) return true;
    return flags.x && this.match(/\s+|#[^\n]*(?:\n|$)/y) !== null;
  }

  private atom(flags: Flags, depth: number): Node {
    const char = this.peek();
    this.at += 1;
    switch (char) {
      case '(': return this.group(flags, depth);
      case '[': return this.characterClass(flags);
      case '.': return set(flags.s ? [[0, 0xffff]] : invertRanges(this.dialect === 'user' ? [[10, 10], [13, 13], [0x2028, 0x2029]] : [[10, 10]]));
      case '^': case '$': return (this.anchoredAtLines = true, { kind: 'assert', text: char });
      case '\\': return this.escaped(flags);
      case '*': case '+': case '?': throw new PatternError('there is nothing to repeat');
      default: return literal(char.charCodeAt(0), flags);
    }
  }

  private group(flags: Flags, depth: number): Node {
    const look = this.match(/\?(?:<?[=!]|>)/y)?.[0];
    const scoped = look ? null : this.match(/\?([imsx]*)(?:-([imsx]+))?:/y);
    const named = look || scoped ? null : this.match(/\?(?:P?<([A-Za-z_]\w*)>|'([A-Za-z_]\w*)')/y);
    const reset = look || scoped || named ? null : this.match(/\?\|/y);
    if (!look && !scoped && !named && !reset && this.peek() === '?') throw new PatternError('this kind of group is not known');
    const capture = !look && !scoped && !reset;
    const of = this.choice(scoped ? changed(flags, scoped[1] ?? '', scoped[2] ?? '') : flags, depth + 1);
    if (!this.take(')')) throw new PatternError('a parenthesis is not closed');
    if (look === '?>' || look === '?=' || look === '?!' || look === '?<=' || look === '?<!') return { kind: 'look', of, open: look };
    return { kind: 'group', of, capture, name: named?.[1] ?? named?.[2] ?? null };
  }

  /** One escape outside of a class. */
  private escaped(flags: Flags): Node {
    if (this.done) throw new PatternError('it ends with a backslash');
    if (this.take('Q')) return this.quoted(flags);
    const reference = this.match(/[1-9]\d?|k(?:<\w+>|\{\w+\}|'\w+')|g\{?\d+\}?/y)?.[0];
    if (reference) this.references = true;
    if (reference) return { kind: 'reference', text: `\\${reference.replace(/^k[{'](\w+)[}']$/, 'k<$1>').replace(/^g\{?(\d+)\}?$/, '$1')}` };
    if (this.match(/b(?!\{)/y)) return { kind: 'assert', text: '\\b' };
    if (this.take('B')) return { kind: 'assert', text: '\\B' };
    if (this.dialect === 'pcre' && this.take('A')) return (this.anchoredAtText = true, { kind: 'assert', text: '^' });
    if (this.dialect === 'pcre' && this.match(/[zZ]/y)) return (this.anchoredAtText = true, { kind: 'assert', text: '$' });
    const ranges = this.classEscape();
    if (ranges) return set(ranges);
    return literal(this.code(), flags);
  }

  private quoted(flags: Flags): Node {
    const end = this.text.indexOf('\\E', this.at);
    const text = this.text.slice(this.at, end < 0 ? undefined : end);
    this.at = end < 0 ? this.text.length : end + 2;
    return { kind: 'sequence', parts: [...text].map((char) => literal(char.charCodeAt(0), flags)) };
  }

  private classEscape(): readonly Range[] | null {
    const name = this.peek();
    if (this.dialect === 'user' && name === 'v') return (this.at += 1, [[11, 11]]);
    const ranges = escapeClasses.get(name);
    if (!ranges || (this.dialect === 'user' && !/[dDsSwW]/.test(name))) return null;
    this.at += 1;
    return ranges;
  }

  /** The character an escape stands for: hexadecimal, octal, control or itself. */
  private code(): number {
    const hex = this.match(/x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,4})\}|([0-9a-fA-F]?))|u([0-9a-fA-F]{4})/y);
    if (hex) return Number.parseInt(hex[1] ?? hex[2] ?? hex[4] ?? (hex[3] || '0'), 16);
    const octal = this.match(/0[0-7]{0,2}|o\{([0-7]{1,3})\}/y);
    if (octal) return Number.parseInt(octal[1] ?? octal[0], 8) & 0xff;
    const control = this.match(/c([A-Za-z@[\\\]^_])/y);
    if (control) return (control[1] ?? '@').toUpperCase().charCodeAt(0) ^ 64;
    const char = this.peek();
    if (/[A-Za-z]/.test(char) && !controls.has(char)) throw new PatternError(`the escape \\${char} is not known`);
    this.at += 1;
    return controls.get(char) ?? char.charCodeAt(0);
  }

  private characterClass(flags: Flags): Node {
    const negated = this.take('^');
    const ranges: Range[] = [];
    for (let first = true; first || this.peek() !== ']'; first = false) {
      if (this.done) throw new PatternError('a class of characters is not closed');
      ranges.push(...this.classItem());
    }
    this.at += 1;
    const folded = flags.i ? foldCase(ranges) : joinRanges(ranges);
    return set(negated ? invertRanges(folded) : folded);
  }

  private classItem(): readonly Range[] {
    const posix = this.match(/\[:(\^?)([a-z]+):\]/y);
    if (posix) {
      const known = posixClasses.get(posix[2] ?? '');
      if (!known) throw new PatternError(`the class [:${posix[2]}:] is not known`);
      return posix[1] ? invertRanges(known) : known;
    }
    const from = this.classCharacter();
    if (typeof from !== 'number') return from;
    if (this.peek() !== '-' || this.peek(1) === ']' || this.peek(1) === '') return [[from, from]];
    const mark = this.at;
    this.at += 1;
    const to = this.classCharacter();
    if (typeof to !== 'number') return (this.at = mark, [[from, from]]);
    if (to < from) throw new PatternError('a range of characters is upside down');
    return [[from, to]];
  }

  private classCharacter(): number | readonly Range[] {
    const char = this.peek();
    if (char === '') throw new PatternError('a class of characters is not closed');
    this.at += 1;
    if (char !== '\\') return char.charCodeAt(0);
    if (this.take('b')) return 8;
    const octal = this.match(/[1-7][0-7]{0,2}/y);
    if (octal) return Number.parseInt(octal[0], 8) & 0xff;
    return this.classEscape() ?? this.code();
  }

  private quantified(of: Node): Node {
    let node = of;
    for (;;) {
      const found = this.match(/(?:([*+?])|\{(\d{1,5})(?:(,)(\d{1,5})?)?\})([?+]?)/y);
      if (!found) return node;
      const [min, max] = counts(found);
      if (max < min || min > countMax || (Number.isFinite(max) && max > countMax)) throw new PatternError(`a repeat count may be at most ${countMax}`);
      node = { kind: 'repeat', of: node, min, max, lazy: found[5] === '?' };
    }
  }
}

function counts(found: RegExpExecArray): [number, number] {
  if (found[1] === '*') return [0, Infinity];
  if (found[1] === '+') return [1, Infinity];
  if (found[1] === '?') return [0, 1];
  const min = Number(found[2]);
  return [min, found[3] === undefined ? min : found[4] === undefined ? Infinity : Number(found[4])];
}

function changed(flags: Flags, on: string, off: string): Flags {
  const value = (name: string, before: boolean) => (off.includes(name) ? false : before || on.includes(name));
  return { i: value('i', flags.i), s: value('s', flags.s), x: value('x', flags.x) };
}

function set(ranges: readonly Range[]): Node {
  return { kind: 'set', ranges, unicode: ranges.some(([, to]) => to > 0xff) };
}

function literal(code: number, flags: Flags): Node {
  return set(flags.i ? foldCase([[code, code]]) : [[code, code]]);
}

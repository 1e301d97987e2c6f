import { wordsByKind } from './words';

/**
 * Kinds, by the letter that stands for them in a fingerprint: k keyword, U union, B group, E expression, t type, f function, n name, 1 number, v variable,
 * s string, o operator, & logic, c comment, A collate, T Transact-SQL, X evil, F unused; punctuation stands for itself; ? unknown.
 */
export interface Token {
  readonly kind: string;
  /** At most 31 characters: longer ones are no word anyone knows. */
  readonly text: string;
  readonly open: string;
  readonly close: string;
}

/** How the value is read: as if it stood behind an open quote, and with MySQL's comments or those of the standard. */
export interface Context { readonly quote: '' | "'" | '"'; readonly mysql: boolean }

const textMax = 31;
const words = new Map(Object.entries(wordsByKind).flatMap(([kind, list]) => list.split('|').map((word): [string, string] => [word, kind])));
// What is separated by `|` above cannot hold it.
for (const [word, kind] of [['|/', 'o'], ['|=', 'o'], ['||', '&']] as const) words.set(word, kind);

/** The kind of a word or phrase; undefined when it means nothing. */
export function kindOf(word: string): string | undefined {
  return words.get(word.toUpperCase());
}

const white = /[\x00-\x20\x7f\xa0]/;
const blank = /[ \t\n\v\f\r\xa0\0]/;
const wordEnd = /[ [\]{}<>:\\?=@!#~+\-*/&|^%(),';\t\n\v\f\r"\xa0\0]/g;
const variableEnd = /[ <>:\\?=@!#~+\-*/&|^%(),';\t\n\v\f\r`"]/g;
const closing: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}', '<': '>' };

/** Splits a value into tokens, one at a time. */
export class Tokenizer {
  count = 0;
  /** Whether a comment was seen that MySQL and the standard read differently. */
  ambiguous = false;
  private at = 0;
  constructor(private readonly value: string, private readonly context: Context) {}

  /** Null at the end. */
  next(): Token | null {
    const { value, context } = this;
    if (value === '') return null;
    if (this.at === 0 && context.quote !== '') return this.counted(this.string(0, context.quote, ''));
    while (this.at < value.length) {
      const char = value.charAt(this.at);
      if (white.test(char)) { this.at += 1; continue; }
      const token = this.read(char);
      if (token) return this.counted(token);
    }
    return null;
  }

  private counted(token: Token): Token {
    this.count += 1;
    return token;
  }

  private read(char: string): Token | null {
    if (char >= '0' && char <= '9') return this.number();
    switch (char) {
      case '"': case "'": return this.string(this.at + 1, char, char);
      case '#': return this.hash();
      case '$': return this.money();
      case '%': case '+': case '^': return this.take(1, 'o');
      case '&': case '*': case ':': case '<': case '=': case '>': case '|': case '~': case '!': return this.operator();
      case '(': case ')': case ',': case ';': case '{': case '}': return this.take(1, char);
      case '-': return this.dash();
      case '.': return this.number();
      case '/': return this.slash();
      case '?': case ']': return this.take(1, '?');
      case '@': return this.variable();
      case '[': return this.bracket();
      case '\\': return this.value.charAt(this.at + 1) === 'N' ? this.take(2, '1') : this.take(1, '\\');
      case '`': return this.tick();
      default: return this.prefixed(char);
    }
  }

  private take(length: number, kind: string): Token {
    const token = made(kind, this.value.slice(this.at, this.at + length));
    this.at += length;
    return token;
  }

  /** Words that a quote may follow: national, escaped, hexadecimal and quoted strings. */
  private prefixed(char: string): Token {
    const following = this.value.charAt(this.at + 1);
    const long = this.at + 2 < this.value.length;
    switch (char.toLowerCase()) {
      case 'b': case 'x': return (long && following === "'" && this.digits(char.toLowerCase() === 'b' ? /'[01]*'/y : /'[0-9a-f]*'/iy)) || this.word();
      case 'e': return long && following === "'" ? this.string(this.at + 2, "'", "'") : this.word();
      case 'n': return long && following === "'" ? this.string(this.at + 2, "'", "'") : this.oracle(1);
      case 'q': return this.oracle(0);
      case 'u': return long && following === '&' && this.value.charAt(this.at + 2) === "'" ? this.unicode() : this.word();
      default: return this.word();
    }
  }

  private digits(pattern: RegExp): Token | null {
    pattern.lastIndex = this.at + 1;
    const found = pattern.exec(this.value);
    return found ? this.take(found[0].length + 1, '1') : null;
  }

  private unicode(): Token {
    this.at += 2;
    const { close, ...token } = this.string(this.at + 1, "'", "'");
    return { ...token, open: 'u', close: close === "'" ? 'u' : close };
  }

  /** Oracle's `q'[…]'`. */
  private oracle(skip: number): Token {
    const at = this.at + skip;
    const { value } = this;
    const delimiter = value.charAt(at + 2);
    if (value.charAt(at).toLowerCase() !== 'q' || at + 2 >= value.length || value.charAt(at + 1) !== "'" || delimiter < '!' || delimiter > '\x7f') return this.word();
    const end = value.indexOf(`${closing[delimiter] ?? delimiter}'`, at + 3);
    this.at = end < 0 ? value.length : end + 2;
    return made('s', value.slice(at + 3, end < 0 ? undefined : end), 'q', end < 0 ? '' : 'q');
  }

  /** A string from `start` to its closing quote; doubled and escaped ones are part of it. */
  private string(start: number, quote: string, open: string): Token {
    const { value } = this;
    let end = value.indexOf(quote, start);
    while (end >= 0) {
      if (isEscaped(value, end, start)) end = value.indexOf(quote, end + 1);
      else if (value.charAt(end + 1) === quote) end = value.indexOf(quote, end + 2);
      else break;
    }
    this.at = end < 0 ? value.length : end + 1;
    return made('s', value.slice(start, end < 0 ? undefined : end), open, end < 0 ? '' : quote);
  }

  private lineComment(): Token {
    const end = this.value.indexOf('\n', this.at);
    const token = made('c', this.value.slice(this.at, end < 0 ? undefined : end));
    this.at = end < 0 ? this.value.length : end + 1;
    return token;
  }

  /** MySQL's comment; elsewhere an operator. */
  private hash(): Token {
    this.ambiguous = true;
    return this.context.mysql ? this.lineComment() : this.take(1, 'o');
  }

  private dash(): Token {
    const { value, at } = this;
    if (value.charAt(at + 1) !== '-') return this.take(1, 'o');
    if (at + 2 >= value.length || blank.test(value.charAt(at + 2))) return this.lineComment();
    if (this.context.mysql) return this.take(1, 'o');
    this.ambiguous = true;
    return this.lineComment();
  }

  /** A nested comment, or MySQL's `/*!`, cannot be read the same way everywhere: evil. */
  private slash(): Token {
    const { value, at } = this;
    if (value.charAt(at + 1) !== '*') return this.take(1, 'o');
    const end = value.indexOf('*/', at + 2);
    const text = value.slice(at, end < 0 ? undefined : end + 2);
    const nested = end >= 0 && value.slice(at + 2, end + 1).includes('/*');
    return this.take(text.length, nested || value.charAt(at + 2) === '!' ? 'X' : 'c');
  }

  private operator(): Token {
    const { value, at } = this;
    if (at + 1 >= value.length) return this.take(1, 'o');
    if (value.startsWith('<=>', at)) return this.take(3, 'o');
    const kind = kindOf(value.slice(at, at + 2));
    if (kind) return this.take(2, kind);
    return this.take(1, value.charAt(at) === ':' ? ':' : 'o');
  }

  private bracket(): Token {
    const end = this.value.indexOf(']', this.at);
    return this.take((end < 0 ? this.value.length : end + 1) - this.at, 'n');
  }

  private word(): Token {
    const length = this.until(wordEnd, this.at) - this.at;
    const text = this.value.slice(this.at, this.at + length).slice(0, textMax);
    for (let at = 0; at < text.length; at += 1) {
      if (text.charAt(at) !== '.' && text.charAt(at) !== '`') continue;
      const kind = kindOf(text.slice(0, at));
      if (kind && kind !== 'n') return this.take(at, kind);
    }
    return this.take(length, length <= textMax ? kindOf(text) ?? 'n' : 'n');
  }

  private until(end: RegExp, from: number): number {
    end.lastIndex = from;
    return end.exec(this.value)?.index ?? this.value.length;
  }

  /** MySQL's quoted name, which may be that of a function. */
  private tick(): Token {
    const { text, open, close } = this.string(this.at + 1, '`', '`');
    return { kind: kindOf(text) === 'f' ? 'f' : 'n', text, open, close };
  }

  private variable(): Token {
    const { value } = this;
    this.at += value.charAt(this.at + 1) === '@' ? 2 : 1;
    const char = value.charAt(this.at);
    if (char === '`') return { ...this.tick(), kind: 'v' };
    if (char === "'" || char === '"') return { ...this.string(this.at + 1, char, char), kind: 'v' };
    return this.take(this.until(variableEnd, this.at) - this.at, 'v');
  }

  /** Amounts of money and PostgreSQL's `$tag$…$tag$`. */
  private money(): Token {
    const { value, at } = this;
    const amount = /[0-9.,]*/y;
    amount.lastIndex = at + 1;
    const digits = amount.exec(value)?.[0] ?? '';
    if (digits === '.') return this.word();
    if (digits !== '') return this.take(digits.length + 1, '1');
    const tag = /\$[A-Za-z]*\$/y;
    tag.lastIndex = at;
    const open = tag.exec(value)?.[0];
    if (open === undefined) return this.take(1, 'n');
    const end = value.indexOf(open, at + open.length);
    this.at = end < 0 ? value.length : end + open.length;
    return made('s', value.slice(at + open.length, end < 0 ? undefined : end), '$', end < 0 ? '' : '$');
  }

  private number(): Token | null {
    const radix = /0(?:[xX]([0-9a-fA-F]*)|[bB]([01]*))/y;
    radix.lastIndex = this.at;
    const found = radix.exec(this.value);
    if (found) return this.take(found[0].length, (found[1] ?? found[2] ?? '') === '' ? 'n' : '1');
    const decimal = /(\d*(?:\.\d*)?)([eE][+-]?(\d*))?/y;
    decimal.lastIndex = this.at;
    const [all = '', mantissa = '', exponent, power = ''] = decimal.exec(this.value) ?? [];
    if (mantissa === '.') return this.take(1, '.');
    const length = all.length + this.suffix(this.at + all.length);
    if (exponent === undefined || power !== '') return this.take(length, '1');
    this.at += length;
    return null;
  }

  /** Oracle's `1.2f` and `1fUNION`. */
  private suffix(at: number): number {
    const { value } = this;
    if (!/[dDfF]/.test(value.charAt(at))) return 0;
    return at + 1 === value.length || /[uU; \t\n\v\f\r\xa0\0]/.test(value.charAt(at + 1)) ? 1 : 0;
  }
}

function made(kind: string, text: string, open = '', close = ''): Token {
  return { kind, text: text.slice(0, textMax), open, close };
}

function isEscaped(value: string, quote: number, start: number): boolean {
  let at = quote - 1;
  while (at >= start && value.charAt(at) === '\\') at -= 1;
  return (quote - 1 - at) % 2 === 1;
}

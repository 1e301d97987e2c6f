export interface HtmlToken { readonly kind: 'text' | 'tag' | 'end' | 'name' | 'value' | 'comment' | 'doctype'; readonly text: string }

/** Where a value begins: between tags, or in an attribute behind one of the quotes. */
export type HtmlContext = 'text' | 'bare' | "'" | '"' | '`';

type Step = (() => HtmlToken | Step | null) | null;

const white = new Set([' ', '\t', '\n', '\v', '\f', '\r', '\0']);

/** Tokens of HTML as lenient browsers see it (WHATWG HTML 13.2.5, with NUL ignored and back quotes taken as quotes). */
export class HtmlTokenizer {
  private at = 0;
  private closing = false;
  private step: Step;

  constructor(private readonly value: string, context: HtmlContext) {
    this.step = context === 'text' ? this.text : context === 'bare' ? this.beforeName : () => this.quoted(context);
  }

  next(): HtmlToken | null {
    for (let found = this.step?.call(this) ?? null; found !== null;) {
      if (typeof found !== 'function') return found;
      found = found.call(this);
    }
    return null;
  }

  private get char(): string { return this.value.charAt(this.at); }
  private get done(): boolean { return this.at >= this.value.length; }

  private emit(kind: HtmlToken['kind'], [from, to]: readonly [number, number], next: number, step: Step): HtmlToken {
    this.at = next;
    this.step = step;
    return { kind, text: this.value.slice(from, to) };
  }

  private text(): HtmlToken | Step {
    const start = this.at;
    const end = this.value.indexOf('<', start);
    if (end < 0) return start < this.value.length ? this.emit('text', [start, this.value.length], this.value.length, null) : this.stop();
    if (end > start) return this.emit('text', [start, end], end + 1, this.tagOpen);
    this.at = end + 1;
    return this.tagOpen;
  }

  private stop(): null {
    this.step = null;
    return null;
  }

  private tagOpen(): HtmlToken | Step {
    const { char } = this;
    if (this.done) return this.stop();
    if (/[A-Za-z\0]/.test(char)) return this.tagName;
    const mark = this.at;
    this.at += 1;
    if (char === '!') return this.declaration;
    if (char === '/') { this.closing = true; return this.endTag; }
    if (char === '?') return this.bogusComment;
    if (char === '%') return () => this.commentUntil('%>', 2);
    return this.emit('text', [mark - 1, mark], mark, this.text);
  }

  private endTag(): HtmlToken | Step {
    if (this.done) return this.stop();
    if (this.char === '>') return this.text;
    if (/[A-Za-z]/.test(this.char)) return this.tagName;
    this.closing = false;
    return this.bogusComment;
  }

  private tagName(): HtmlToken | Step {
    const start = this.at;
    for (let at = start; at < this.value.length; at += 1) {
      const char = this.value.charAt(at);
      if (char === '\0') continue;
      if (white.has(char)) return this.emit('tag', [start, at], at + 1, this.beforeName);
      if (char === '/') return this.emit('tag', [start, at], at + 1, this.selfClosing);
      if (char !== '>') continue;
      if (!this.closing) return this.emit('tag', [start, at], at, this.tagEnd);
      this.closing = false;
      return this.emit('end', [start, at], at + 1, this.text);
    }
    return this.emit('tag', [start, this.value.length], this.value.length, null);
  }

  private tagEnd(): HtmlToken {
    this.closing = false;
    return this.emit('end', [this.at, this.at + 1], this.at + 1, this.text);
  }

  private skipWhite(): void {
    while (!this.done && white.has(this.char)) this.at += 1;
  }

  private beforeName(): HtmlToken | Step {
    this.skipWhite();
    if (this.done) return this.stop();
    if (this.char === '/') { this.at += 1; return this.selfClosing; }
    if (this.char === '>') return this.emit('end', [this.at, this.at + 1], this.at + 1, this.text);
    return this.name;
  }

  private name(): HtmlToken {
    const start = this.at;
    for (let at = start + 1; at < this.value.length; at += 1) {
      const char = this.value.charAt(at);
      if (white.has(char)) return this.emit('name', [start, at], at + 1, this.afterName);
      if (char === '/') return this.emit('name', [start, at], at + 1, this.selfClosing);
      if (char === '=') return this.emit('name', [start, at], at + 1, this.beforeValue);
      if (char === '>') return this.emit('name', [start, at], at, this.tagEnd);
    }
    return this.emit('name', [start, this.value.length], this.value.length, null);
  }

  private afterName(): HtmlToken | Step {
    this.skipWhite();
    if (this.done) return this.stop();
    if (this.char === '/') { this.at += 1; return this.selfClosing; }
    if (this.char === '=') { this.at += 1; return this.beforeValue; }
    return this.char === '>' ? this.tagEnd : this.name;
  }

  private beforeValue(): HtmlToken | Step {
    this.skipWhite();
    if (this.done) return this.stop();
    const { char } = this;
    return char === '"' || char === "'" || char === '`' ? () => this.quoted(char) : this.unquoted;
  }

  /** At the very beginning the quote stands outside of the value. */
  private quoted(quote: string): HtmlToken {
    const start = this.at > 0 ? this.at + 1 : 0;
    const end = this.value.indexOf(quote, start);
    if (end < 0) return this.emit('value', [start, this.value.length], this.value.length, null);
    return this.emit('value', [start, end], end + 1, this.afterQuoted);
  }

  private unquoted(): HtmlToken {
    const start = this.at;
    for (let at = start; at < this.value.length; at += 1) {
      const char = this.value.charAt(at);
      if (white.has(char)) return this.emit('value', [start, at], at + 1, this.beforeName);
      if (char === '>') return this.emit('value', [start, at], at, this.tagEnd);
    }
    return this.emit('value', [start, this.value.length], this.value.length, null);
  }

  private afterQuoted(): HtmlToken | Step {
    if (this.done) return this.stop();
    if (this.char === '/') { this.at += 1; return this.selfClosing; }
    if (this.char === '>') return this.emit('end', [this.at, this.at + 1], this.at + 1, this.text);
    return this.beforeName;
  }

  private selfClosing(): HtmlToken | Step {
    if (this.done) return this.stop();
    if (this.char !== '>') return this.beforeName;
    return this.emit('end', [Math.max(0, this.at - 1), this.at + 1], this.at + 1, this.text);
  }

  private declaration(): HtmlToken | Step {
    const rest = this.value.slice(this.at, this.at + 7);
    if (rest.toLowerCase() === 'doctype') return this.upTo('doctype', '>', 1);
    if (rest === '[CDATA[') { this.at += 7; return () => this.upTo('text', ']]>', 3); }
    if (rest.startsWith('--')) { this.at += 2; return this.comment; }
    return this.bogusComment;
  }

  private comment(): HtmlToken {
    const end = /-\0*[-!]>/g;
    end.lastIndex = this.at;
    const found = end.exec(this.value);
    const start = this.at;
    if (!found) return this.emit('comment', [start, this.value.length], this.value.length, null);
    return this.emit('comment', [start, found.index], end.lastIndex, this.text);
  }

  private bogusComment(): HtmlToken {
    return this.commentUntil('>', 1);
  }

  private commentUntil(end: string, length: number): HtmlToken {
    return this.upTo('comment', end, length);
  }

  private upTo(kind: HtmlToken['kind'], mark: string, length: number): HtmlToken {
    const start = this.at;
    const end = this.value.indexOf(mark, start);
    if (end < 0) return this.emit(kind, [start, this.value.length], this.value.length, null);
    return this.emit(kind, [start, end], end + length, this.text);
  }
}

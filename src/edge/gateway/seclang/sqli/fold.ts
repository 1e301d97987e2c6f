import { kindOf, type Token, type Tokenizer } from './tokens';

const tokensMax = 5;
const emptyComment: Token | null = null;

/** What is left of a value once everything that does not change its meaning as SQL is folded away: at most five tokens. */
export function fold(tokenizer: Tokenizer): readonly Token[] {
  return new Folder(tokenizer).run();
}

class Folder {
  private readonly tokens: Token[] = [];
  /** Tokens before this position are folded. */
  private left = 0;
  private more = true;
  private comment = emptyComment;
  constructor(private readonly tokenizer: Tokenizer) {}

  run(): readonly Token[] {
    if (!this.first()) return [];
    for (;;) {
      this.restartAfterList();
      if (!this.more || this.left >= tokensMax) break;
      this.fetch(2);
      if (this.tokens.length - this.left < 2) { this.left = this.tokens.length; continue; }
      const two = this.foldTwo();
      if (two === 'evil') return this.tokens.slice(0, this.left + 2);
      if (two) continue;
      this.fetch(3);
      if (this.tokens.length - this.left < 3) { this.left = this.tokens.length; continue; }
      if (!this.foldThree()) this.left += 1;
    }
    const folded = this.tokens.slice(0, tokensMax);
    return this.comment && folded.length < tokensMax ? [...folded, this.comment] : folded;
  }

  /** Comments, parentheses, types and unary operators before everything else say nothing. */
  private first(): boolean {
    for (;;) {
      const token = this.tokenizer.next();
      if (!token) return false;
      if (token.kind === 'c' || token.kind === '(' || token.kind === 't' || isUnary(token)) continue;
      this.tokens.push(token);
      return true;
    }
  }

  private fetch(count: number): void {
    while (this.more && this.tokens.length <= tokensMax && this.tokens.length - this.left < count) {
      const token = this.tokenizer.next();
      if (!token) this.more = false;
      else if (token.kind === 'c') this.comment = token;
      else { this.comment = null; this.tokens.push(token); }
    }
  }

  /** A sum or list in parentheses of which five tokens were seen: go on behind it. */
  private restartAfterList(): void {
    if (this.tokens.length < tokensMax) return;
    const shape = this.tokens.slice(0, tokensMax).map(({ kind }) => kind).join('');
    if (!/^(?:1[o,]\(1\)|no\([n1]\)|1\),\(1|n\)o\(n)$/.test(shape)) return;
    this.tokens.splice(1, tokensMax - 1);
    this.left = 0;
  }

  private kinds(at: number): string { return this.tokens[at]?.kind ?? ''; }
  private text(at: number): string { return (this.tokens[at]?.text ?? '').toUpperCase(); }

  private drop(at: number, count: number, left = 0): true {
    this.tokens.splice(at, count);
    this.left = left;
    return true;
  }

  private become(at: number, kind: string): true {
    const token = this.tokens[at];
    if (token) this.tokens[at] = { ...token, kind };
    return true;
  }

  /** Folds two tokens; true when it did something that must be looked at again. */
  private foldTwo(): boolean | 'evil' {
    const { left } = this;
    const [a, b] = [this.tokens[left], this.tokens[left + 1]];
    if (!a || !b) return false;
    const pair = a.kind + b.kind;
    if (pair === 'ss' || pair === ';;') return this.drop(left + 1, 1, left);
    if ((a.kind === 'o' || a.kind === '&') && (isUnary(b) || b.kind === 't')) return this.drop(left + 1, 1);
    if (a.kind === '(' && isUnary(b)) return this.drop(left + 1, 1, Math.max(0, left - 1));
    if (this.merge(a, b)) return true;
    if (pair === ';f' && /^IF/i.test(b.text)) return this.become(left + 1, 'T');
    if ((a.kind === 'n' || a.kind === 'v') && b.kind === '(' && alsoFunctions.has(a.text.toUpperCase())) return this.become(left, 'f');
    if (a.kind === 'k' && /^(?:NOT )?IN$/i.test(a.text)) return this.become(left, b.kind === '(' ? 'o' : 'n');
    if (a.kind === 'o' && /^(?:NOT )?LIKE$/i.test(a.text)) { if (b.kind === '(') this.become(left, 'f'); return false; }
    if (a.kind === 't' && /^[n1t(fvs]$/.test(b.kind)) return this.drop(left, 1);
    if (pair === 'An') return this.collation(b);
    return this.foldMarks(a, b);
  }

  private foldMarks(a: Token, b: Token): boolean | 'evil' {
    const { left } = this;
    if (a.kind === '\\') {
      if (b.kind === 'o' && /^[*/\-+%]$/.test(b.text)) { this.left = 0; return this.become(left, '1'); }
      return this.drop(left, 1);
    }
    if ((a.kind === '(' && b.kind === '(') || (a.kind === ')' && b.kind === ')')) return this.drop(left + 1, 1);
    if (a.kind === '{' && b.kind === 'n') {
      if (b.text !== '') return this.drop(left, 2);
      this.become(left + 1, 'X');
      return 'evil';
    }
    return b.kind === '}' && this.drop(left + 1, 1);
  }

  /** A collation's name is told by its underscore. */
  private collation(name: Token): boolean {
    if (name.text.includes('_')) { this.become(this.left + 1, 't'); this.left = 0; }
    return false;
  }

  /** `UNION` and `ALL` are one word. */
  private merge(a: Token, b: Token): boolean {
    if (!/^[knoUfETt]$/.test(a.kind) || !/^[knoUfETt&]$/.test(b.kind) || a.text.length + b.text.length + 1 > 31) return false;
    const text = `${a.text} ${b.text}`;
    const kind = kindOf(text);
    if (kind === undefined) return false;
    this.tokens.splice(this.left, 2, { ...a, kind, text });
    if (this.left > 0) this.left -= 1;
    return true;
  }

  /** Folds three tokens. */
  private foldThree(): boolean {
    const { left } = this;
    const [a, b, c] = [this.kinds(left), this.kinds(left + 1), this.kinds(left + 2)];
    const shape = a + b + c;
    const sign = isUnary(this.tokens[left + 1]);
    if (shape === '1o1' || (a === 'o' && b !== '(' && c === 'o') || (a === '&' && c === '&')) return this.drop(left + 1, 2);
    if (/^vo[v1n]$/.test(shape) || /^[n1]o[1n]$/.test(shape)) return this.drop(left + 1, 2);
    if (/^[n1vs]ot$/.test(shape) && this.text(left + 1) === '::') return this.drop(left + 1, 2);
    if (/^[n1sv],[1nsv]$/.test(shape)) return this.drop(left + 1, 2);
    if (/^[EB,]$/.test(a) && sign && c === '(') return this.drop(left + 1, 1);
    if (/^[kEB]$/.test(a) && sign && /^[1nvsf]$/.test(c)) return this.drop(left + 1, 1);
    if (a === ',' && sign && /^[1nvs]$/.test(c)) return this.stepBack();
    if (a === ',' && sign && c === 'f') return this.drop(left + 1, 1);
    if (shape === 'n.n') return this.drop(left + 1, 2);
    if (shape === 'E.n') return this.drop(left + 1, 1);
    if (a === 'f' && b === '(' && c !== ')' && this.text(left) === 'USER') this.become(left, 'n');
    return false;
  }

  /** `1,-1` is `1`: the three last tokens go. */
  private stepBack(): true {
    this.tokens.splice(this.tokens.length - 3, 3);
    this.left = 0;
    return true;
  }
}

const alsoFunctions = new Set(['USER_ID', 'USER_NAME', 'DATABASE', 'PASSWORD', 'USER', 'CURRENT_USER', 'CURRENT_DATE', 'CURRENT_TIME', 'CURRENT_TIMESTAMP', 'LOCALTIME', 'LOCALTIMESTAMP']);

function isUnary(token: Token | undefined): boolean {
  return token?.kind === 'o' && /^(?:[+\-!~]|!!|NOT)$/i.test(token.text);
}

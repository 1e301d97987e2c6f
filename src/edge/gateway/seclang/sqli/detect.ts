import { isKnownFingerprint } from './fingerprints';
import { fold } from './fold';
import { type Context, type Token, Tokenizer } from './tokens';

interface Reading { readonly fingerprint: string; readonly tokens: readonly Token[]; readonly count: number; readonly ambiguous: boolean }

/** The fingerprint of a value that would change the meaning of an SQL statement it is pasted into, bare or between quotes; null otherwise. */
export function detectSqli(value: string): string | null {
  if (value === '') return null;
  return attack(value, { quote: '', mysql: false })
    ?? (value.includes("'") ? attack(value, { quote: "'", mysql: false }) : null)
    ?? (value.includes('"') ? attackIn(value, { quote: '"', mysql: true }) : null);
}

/** As the standard reads it and, where a comment is read differently, as MySQL does. */
function attack(value: string, context: Context): string | null {
  const reading = read(value, context);
  if (isAttack(value, reading)) return reading.fingerprint;
  return reading.ambiguous ? attackIn(value, { ...context, mysql: true }) : null;
}

function attackIn(value: string, context: Context): string | null {
  const reading = read(value, context);
  return isAttack(value, reading) ? reading.fingerprint : null;
}

function read(value: string, context: Context): Reading {
  const tokenizer = new Tokenizer(value, context);
  const tokens = [...fold(tokenizer)];
  const last = tokens.at(-1);
  if (tokens.length > 2 && last?.kind === 'n' && last.open === '`' && last.text === '' && last.close === '') tokens.splice(-1, 1, { ...last, kind: 'c' });
  const fingerprint = tokens.map(({ kind }) => kind).join('');
  return { fingerprint: fingerprint.includes('X') ? 'X' : fingerprint, tokens, count: tokenizer.count, ambiguous: tokenizer.ambiguous };
}

function isAttack(value: string, reading: Reading): boolean {
  const { fingerprint, tokens } = reading;
  if (!isKnownFingerprint(fingerprint)) return false;
  if (fingerprint.length > 1 && fingerprint.endsWith('c') && value.includes('sp_password')) return true;
  const [a, b, c] = tokens;
  if (fingerprint.length === 2 && a && b) return isShortAttack(value, reading, a, b);
  if (fingerprint.length === 3 && a && b && c) return isPlainAttack(reading, a, b, c);
  return true;
}

/** Two tokens are in many ordinary values: what else is there decides. */
function isShortAttack(value: string, { count }: Reading, a: Token, b: Token): boolean {
  if (b.kind === 'U') return count !== 2;
  if (b.text.startsWith('#')) return false;
  if (a.kind === 'n' && b.kind === 'c' && !b.text.startsWith('/')) return false;
  if (a.kind === '1' && b.kind === 'c') {
    if (b.text.startsWith('/') || count > 2) return true;
    return /^(?:[\x00-\x20\x80-\xff]|\/\*|--|$)/.test(value.slice(a.text.length));
  }
  return !(b.text.length > 2 && b.text.startsWith('-'));
}

/** Three tokens, of which prose has some: `sexy and 17`. */
function isPlainAttack({ fingerprint, count }: Reading, a: Token, b: Token, c: Token): boolean {
  if (fingerprint === 'sos' || fingerprint === 's&s') return a.open === '' && c.close === '' && a.close === c.open;
  if (/^(?:s&n|n&1|1&1|1&v|1&s)$/.test(fingerprint)) return count !== 3;
  if (b.kind === 'k') return b.text.length >= 5 && /^INTO/i.test(b.text);
  return true;
}

import type { RequestFacts } from '../../gateway/ports';
import { parseAddress, type Address } from './address-set';

/**
 * What rules compare of a request, made when first asked for. Texts are Unicode: byte strings are read as UTF-8, faults as
 * U+FFFD. A header, cookie or argument that comes several times has several values.
 */
export class RequestView {
  private parsedAddress: Address | null | undefined;
  private parsedCookies: ReadonlyMap<string, string[]> | undefined;
  private parsedArgs: ReadonlyMap<string, string[]> | undefined;

  constructor(readonly facts: RequestFacts) {}

  get address(): Address | null {
    return (this.parsedAddress ??= parseAddress(this.facts.clientIp));
  }

  /** `name` in lower case. */
  header(name: string): readonly string[] {
    const values: string[] = [];
    for (const [key, value] of this.facts.headers) if (key === name) values.push(unicode(value));
    return values;
  }

  /** The first value; null when there is none. */
  firstHeader(name: string): string | null {
    for (const [key, value] of this.facts.headers) if (key === name) return unicode(value);
    return null;
  }

  cookie(name: string): readonly string[] {
    this.parsedCookies ??= grouped(this.header('cookie').flatMap((line) => line.split(';').map((pair) => split(pair.trim()))));
    return this.parsedCookies.get(name) ?? [];
  }

  /** Of the query, decoded once: `+` is a space. */
  arg(name: string): readonly string[] {
    this.parsedArgs ??= grouped(this.facts.rawQuery.split('&').filter(Boolean).map((pair) => {
      const [key, value] = split(pair);
      return [decoded(key), decoded(value)] as const;
    }));
    return this.parsedArgs.get(name) ?? [];
  }

  /** Bytes as announced, else as far as read. */
  get bodySize(): number {
    return this.facts.contentLength ?? this.facts.body?.length ?? 0;
  }
}

/** A latin1 byte string as UTF-8 text. */
export function unicode(bytes: string): string {
  return /[\x80-\xff]/.test(bytes) ? Buffer.from(bytes, 'latin1').toString('utf8') : bytes;
}

/** Percent escapes and `+` once; an escape that is none stays as it is. */
export function decoded(text: string): string {
  if (!/[%+\x80-\xff]/.test(text)) return text;
  return unicode(text.replaceAll('+', ' ').replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))));
}

function split(pair: string): readonly [name: string, value: string] {
  const at = pair.indexOf('=');
  return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
}

function grouped(pairs: readonly (readonly [string, string])[]): ReadonlyMap<string, string[]> {
  const map = new Map<string, string[]>();
  for (const [name, value] of pairs) {
    const known = map.get(name);
    if (known) known.push(value);
    else map.set(name, [value]);
  }
  return map;
}

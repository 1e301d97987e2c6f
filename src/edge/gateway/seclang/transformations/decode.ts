/** Decoding transformations on latin1 byte strings. What cannot be decoded stays as it is; the behaviour is ModSecurity 3's. */

const hex = (digits: string): number => Number.parseInt(digits, 16);
const byte = (code: number): string => String.fromCharCode(code & 0xff);

/** `%uHHHH` and `\uHHHH`: the low byte; full-width forms of ASCII (ff01–ff5e) become ASCII. */
function unicodeByte(digits: string): string {
  const low = hex(digits.slice(-2));
  const full = /^0*ff..$/i.test(digits) && low > 0 && low < 0x5f;
  return byte(full ? low + 0x20 : low);
}

export function urlDecode(value: string): string {
  if (!/[%+]/.test(value)) return value;
  return value.replace(/\+|%([0-9a-fA-F]{2})/g, (_all, pair: string | undefined) => (pair === undefined ? ' ' : byte(hex(pair))));
}

export function urlDecodeUni(value: string): string {
  if (!/[%+]/.test(value)) return value;
  return value.replace(/\+|%[uU]([0-9a-fA-F]{4})|%([0-9a-fA-F]{2})/g, (_all, wide: string | undefined, pair: string | undefined) => {
    if (wide !== undefined) return unicodeByte(wide);
    return pair === undefined ? ' ' : byte(hex(pair));
  });
}

export function urlEncode(value: string): string {
  return value.replace(/[^A-Za-z0-9*]/g, (char) => (char === ' ' ? '+' : `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`));
}

const escapes: Readonly<Record<string, string>> = { a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

export function jsDecode(value: string): string {
  if (!value.includes('\\')) return value;
  return value.replace(/\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-3][0-7]{0,2}|[4-7][0-7]?)|([^]))/g,
    (_all, ...[wide, pair, octal, char]: readonly (string | undefined)[]) => {
      if (wide !== undefined) return unicodeByte(wide);
      if (pair !== undefined) return byte(hex(pair));
      if (octal !== undefined) return byte(Number.parseInt(octal, 8));
      return escapes[char ?? ''] ?? char ?? '';
    });
}

/** C escapes: as jsDecode without `\u`, and `\?` `\'` `\"` `\\`; an unknown escape keeps its letter. */
export function escapeSeqDecode(value: string): string {
  if (!value.includes('\\')) return value;
  return value.replace(/\\(?:x([0-9a-fA-F]{2})|([0-3][0-7]{0,2}|[4-7][0-7]?)|([^]))/g, (_all, pair: string | undefined, octal: string | undefined, char: string | undefined) => {
    if (pair !== undefined) return byte(hex(pair));
    if (octal !== undefined) return byte(Number.parseInt(octal, 8));
    return escapes[char ?? ''] ?? char ?? '';
  });
}

export function cssDecode(value: string): string {
  if (!value.includes('\\')) return value;
  return value.replace(/\\(?:([0-9a-fA-F]{1,6})[ \t\n\v\f\r]?|(\n)|([^])|$)/g, (_all, digits: string | undefined, line: string | undefined, char: string | undefined) => {
    if (digits === undefined) return line === undefined ? char ?? '' : '';
    return digits.length >= 4 ? unicodeByte(digits.slice(-4)) : byte(hex(digits.slice(-2)));
  });
}

const entities: Readonly<Record<string, string>> = { quot: '"', amp: '&', lt: '<', gt: '>', nbsp: '\xa0' };

export function htmlEntityDecode(value: string): string {
  if (!value.includes('&')) return value;
  return value.replace(/&(?:#[xX]([0-9a-fA-F]+)|#([0-9]+)|(quot|amp|lt|gt|nbsp));?/gi,
    (_all, digits: string | undefined, decimal: string | undefined, name: string | undefined) => {
      if (digits !== undefined) return byte(hex(digits.slice(-8)));
      if (decimal !== undefined) return byte(Number(decimal.slice(-10)) % 0x1_0000_0000);
      return entities[(name ?? '').toLowerCase()] ?? '';
    });
}

/** Every UTF-8 sequence of two and more bytes becomes `%uHHHH`, overlong ones too. */
export function utf8toUnicode(value: string): string {
  if (!/[\x80-\xff]/.test(value)) return value;
  return value.replace(/[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}/g, (sequence) => {
    const lead = sequence.charCodeAt(0) & (0xff >> (sequence.length + 1));
    let code = lead;
    for (let at = 1; at < sequence.length; at += 1) code = code * 64 + (sequence.charCodeAt(at) & 0x3f);
    return `%u${code.toString(16).padStart(4, '0')}`;
  });
}

/** Strict: up to the first character that is not base64; a value that does not begin with base64 gives the empty string. */
export function base64Decode(value: string): string {
  const clean = /^[A-Za-z0-9+/]*={0,2}/.exec(value)?.[0] ?? '';
  return Buffer.from(clean, 'base64').toString('latin1');
}

/** Forgiving: characters that are not base64 are passed over. */
export function base64DecodeExt(value: string): string {
  return Buffer.from(value.replace(/[^A-Za-z0-9+/]/g, ''), 'base64').toString('latin1');
}

export function hexDecode(value: string): string {
  return value.slice(0, value.length & ~1).replace(/[^]{2}/g, (pair) => byte(/^[0-9a-fA-F]{2}$/.test(pair) ? hex(pair) : 0));
}

/** `0x` followed by pairs of hexadecimal digits, as MySQL reads a string. */
export function sqlHexDecode(value: string): string {
  return value.replace(/0[xX]((?:[0-9a-fA-F]{2})+)/g, (_all, digits: string) => hexDecode(digits));
}

import { Unsupported } from '../directives';

/** `1-255,10`: answers whether a byte outside stands in the value. */
export function byteRange(argument: string): (value: string) => boolean {
  const allowed = new Uint8Array(256);
  for (const part of argument.split(',')) {
    const found = /^\s*(\d{1,3})(?:-(\d{1,3}))?\s*$/.exec(part);
    if (!found) throw new Unsupported(`byte range ${argument}`);
    for (let code = Number(found[1]); code <= Math.min(255, Number(found[2] ?? found[1])); code += 1) allowed[code] = 1;
  }
  return (value) => {
    for (let at = 0; at < value.length; at += 1) if (allowed[value.charCodeAt(at)] !== 1) return true;
    return false;
  };
}

/** Whether a percent sign is not followed by two hexadecimal digits. */
export function isBadUrlEncoding(value: string): boolean {
  return value.includes('%') && /%(?![0-9a-fA-F]{2})/.test(value);
}

const wellFormed = /^(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})*$/;

/** Whether the bytes are not UTF-8 (RFC 3629): overlong, surrogate, cut off or stray. */
export function isBadUtf8(value: string): boolean {
  return /[\x80-\xff]/.test(value) && !wellFormed.test(value);
}

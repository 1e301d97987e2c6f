/** Transformations that bring one meaning into one shape. The behaviour is ModSecurity 3's. */

export function lowercase(value: string): string {
  return /[A-Z]/.test(value) ? value.replace(/[A-Z]+/g, (part) => part.toLowerCase()) : value;
}

export function uppercase(value: string): string {
  return value.replace(/[a-z]+/g, (part) => part.toUpperCase());
}

export function removeNulls(value: string): string {
  return value.includes('\0') ? value.replaceAll('\0', '') : value;
}

export function replaceNulls(value: string): string {
  return value.includes('\0') ? value.replaceAll('\0', ' ') : value;
}

const space = /[ \t\n\v\f\r\xa0]/;

export function removeWhitespace(value: string): string {
  return space.test(value) ? value.replace(/[ \t\n\v\f\r\xa0]+/g, '') : value;
}

export function compressWhitespace(value: string): string {
  return space.test(value) ? value.replace(/[ \t\n\v\f\r\xa0]+/g, ' ') : value;
}

export function trimLeft(value: string): string {
  return value.replace(/^[ \t\n\v\f\r]+/, '');
}

export function trimRight(value: string): string {
  let end = value.length;
  while (end > 0 && ' \t\n\v\f\r'.includes(value.charAt(end - 1))) end -= 1;
  return value.slice(0, end);
}

export function trim(value: string): string {
  return trimRight(trimLeft(value));
}

/** Every C comment becomes one space; one that is not closed reaches to the end. */
export function replaceComments(value: string): string {
  if (!value.includes('/*')) return value;
  let out = '';
  let at = 0;
  for (;;) {
    const open = value.indexOf('/*', at);
    if (open < 0) return out + value.slice(at);
    out += `${value.slice(at, open)} `;
    const close = value.indexOf('*/', open + 2);
    if (close < 0) return out;
    at = close + 2;
  }
}

/** C and HTML comments vanish; `--` and `#` end the value. */
export function removeComments(value: string): string {
  if (!/\/\*|<!--|--|#/.test(value)) return value;
  let out = '';
  for (let at = 0; at < value.length;) {
    const close = value.startsWith('/*', at) ? '*/' : value.startsWith('<!--', at) ? '-->' : null;
    if (close !== null) {
      const end = value.indexOf(close, at + 2);
      if (end < 0) return out;
      at = end + close.length;
    } else {
      if (value.startsWith('--', at) || value.charAt(at) === '#') return out;
      out += value.charAt(at);
      at += 1;
    }
  }
  return out;
}

export function removeCommentsChar(value: string): string {
  return /[*\-#]/.test(value) ? value.replace(/\/\*|\*\/|<!--|-->|--|#/g, '') : value;
}

/** A command line as a shell would read it: quotes and escapes gone, separators and white space to one space, no space before `/` and `(`, lower case. */
export function cmdLine(value: string): string {
  if (!/[\\"'^,;\s/(A-Z]/.test(value)) return value;
  return value.replace(/[\\"'^]+/g, '').replace(/[\s,;]+/g, ' ').replace(/ (?=[/(])/g, '').replace(/[A-Z]+/g, (part) => part.toLowerCase());
}

/** Without repeated slashes, `.` segments and, where there is a parent, `..` segments. */
export function normalizePath(value: string): string {
  if (!/\/\/|\/\.|^\.{1,2}(?:\/|$)/.test(value)) return value;
  const absolute = value.startsWith('/');
  const out: string[] = [];
  for (const segment of value.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment !== '..') out.push(segment);
    else if (out.length > 0 && out.at(-1) !== '..') out.pop();
    else if (!absolute) out.push('..');
  }
  const folder = /(?:\/|\/\.{1,2})$/.test(value) && out.length > 0;
  return `${absolute ? '/' : ''}${out.join('/')}${folder ? '/' : ''}`;
}

export function normalizePathWin(value: string): string {
  return normalizePath(value.includes('\\') ? value.replaceAll('\\', '/') : value);
}

/**
 * A domain name as it stands on the wire: length-prefixed labels and the root's zero, one character per octet, ASCII
 * letters in lower case. Two names are equal exactly when the strings are (RFC 4343), whatever octets their labels hold,
 * and a parent is a slice. Text forms are for people and for the database.
 */
export type WireName = string;

export const root: WireName = '\0';
const longest = 255;

/** Thrown by the readers of this folder, and only by them: the octets or the text are no DNS name or message. */
export class MalformedDns extends Error {
  override readonly name = 'MalformedDns';
}

/** Name of a text form, final dot or not; `\.` and `\DDD` as in zone files. Errors: MalformedDns. */
export function wireName(text: string): WireName {
  const bare = text.endsWith('.') && !text.endsWith('\\.') ? text.slice(0, -1) : text;
  if (bare === '') return root;
  const labels = bare.includes('\\') ? escapedLabels(bare) : bare.split('.');
  if (/[^\0-\xff]/.test(bare)) throw new MalformedDns('a name is written in ASCII');
  let wire = '';
  for (const label of labels) {
    if (label.length === 0 || label.length > 63) throw new MalformedDns('a label has 1 to 63 octets');
    wire += String.fromCharCode(label.length) + lowerCase(label);
  }
  if (wire.length >= longest) throw new MalformedDns('a name has at most 255 octets');
  return wire + root;
}

/** Lower-case text form without final dot; `.` for the root. */
export function textName(name: WireName): string {
  if (name === root) return '.';
  const labels: string[] = [];
  for (let at = 0; at < name.length - 1; at += 1 + name.charCodeAt(at)) {
    labels.push(name.slice(at + 1, at + 1 + name.charCodeAt(at)).replace(/[^!-~]|[.\\"();@$]/g, escaped));
  }
  return labels.join('.');
}

/** The name without its first label; the root's parent is the root. */
export function parentOf(name: WireName): WireName {
  return name === root ? root : name.slice(1 + name.charCodeAt(0));
}

/** Whether `name` is `ancestor` or stands below it. */
export function isWithin(name: WireName, ancestor: WireName): boolean {
  let rest = name;
  while (rest.length > ancestor.length) rest = parentOf(rest);
  return rest === ancestor;
}

/** The wildcard directly below a name (RFC 4592 §2.1.1). */
export function wildcardOf(encloser: WireName): WireName {
  return `\x01*${encloser}`;
}

/**
 * Reads a name and follows its compression pointers. Every pointer must lead before the place it was met at, so no chain
 * of them is endless; the name has at most 255 octets. Errors: MalformedDns.
 */
export function readName(message: Buffer, start: number): { name: WireName; end: number } {
  let name = '';
  let at = start;
  let end = -1;
  let floor = start;
  for (;;) {
    const length = message[at];
    if (length === undefined) throw new MalformedDns('a name runs past the end');
    if (length === 0) return { name: name + root, end: end < 0 ? at + 1 : end };
    if (length >= 0xc0) {
      const low = message[at + 1];
      const target = ((length & 0x3f) << 8) | (low ?? 0);
      if (low === undefined || target < 12 || target >= floor) throw new MalformedDns('a pointer must lead back');
      if (end < 0) end = at + 2;
      at = target;
      floor = target;
    } else {
      if (length > 63 || at + 1 + length > message.length || name.length + length + 2 > longest) throw new MalformedDns('a label is too long');
      name += String.fromCharCode(length) + lowerCase(message.toString('latin1', at + 1, at + 1 + length));
      at += 1 + length;
    }
  }
}

/** ASCII letters only: `toLowerCase` would change octets above 0x7f. */
function lowerCase(label: string): string {
  return /^[\0-\x7f]*$/.test(label) ? label.toLowerCase() : label.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function escaped(char: string): string {
  return /[.\\"();@$]/.test(char) ? `\\${char}` : `\\${String(char.charCodeAt(0)).padStart(3, '0')}`;
}

function escapedLabels(text: string): string[] {
  const labels: string[] = [];
  let label = '';
  for (const [, octet, char, plain] of text.matchAll(/\\(\d{3})|\\(\D)|([^\\]|\\$)/gs)) {
    if (plain === '.') {
      labels.push(label);
      label = '';
    } else label += octet === undefined ? (char ?? plain ?? '') : String.fromCharCode(Number(octet) & 0xff);
  }
  return [...labels, label];
}

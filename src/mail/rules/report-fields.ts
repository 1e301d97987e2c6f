/** Fields of one group of a report: names in lower case; of a repeated name every value. */
export type Fields = ReadonlyMap<string, readonly string[]>;

/** Groups of fields, divided by blank lines (RFC 3464 §2.1, RFC 5965 §3), whatever ends the lines; folded values are joined. */
export function readGroups(text: string): Fields[] {
  return text.replace(/\r\n?/g, '\n').split(/\n(?:[ \t]*\n)+/).map(readGroup).filter((group) => group.size > 0);
}

function readGroup(text: string): Fields {
  const fields = new Map<string, string[]>();
  for (const line of text.replace(/\n[ \t]+/g, ' ').split('\n')) {
    const [, name = '', value = ''] = /^([!-9;-~]+)[ \t]*:(.*)$/.exec(line) ?? [];
    if (name !== '') fields.set(name.toLowerCase(), [...(fields.get(name.toLowerCase()) ?? []), value.trim()]);
  }
  return fields;
}

export function first(fields: Fields, name: string): string {
  return fields.get(name)?.[0] ?? '';
}

/** The address of a typed field: `rfc822; user@host`, `utf-8; user@host`, or bare; without brackets, in lower case. */
export function addressOf(value: string): string {
  return value.replace(/^\s*[a-z0-9-]+\s*;/i, '').replace(/^[\s<]+|[\s>]+$/g, '').toLowerCase();
}

/** What follows the type of a typed field: `dns; mx.y.org`, `smtp; 550 5.1.1 …`. */
export function typedValue(value: string): string {
  return value.replace(/^\s*[a-z0-9-]+\s*;/i, '').trim();
}

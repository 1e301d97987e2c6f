/** One directive of a rule file, with its arguments unquoted. */
export interface Directive {
  readonly name: string;
  readonly args: readonly string[];
  readonly file: string;
  readonly line: number;
}

/** What stands in a rule file that cannot be used, for the operator. */
export interface Skipped {
  readonly file: string;
  readonly line: number;
  readonly what: string;
}

/** A rule that this engine cannot run. The message names the part. */
export class Unsupported extends Error {}

/** Directives in order: comments gone, lines that end in a backslash joined. */
export function readDirectives(text: string, file: string): Directive[] {
  const lines = text.split(/\r?\n/);
  const directives: Directive[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = at + 1;
    let content = (lines[at] ?? '').trim();
    if (content === '' || content.startsWith('#')) continue;
    while (content.endsWith('\\') && at + 1 < lines.length) {
      at += 1;
      content = content.slice(0, -1) + (lines[at] ?? '').trim();
    }
    const [name = '', ...args] = words(content);
    directives.push({ name, args, file, line });
  }
  return directives;
}

/** Splits at white space; in double quotes `\"` is a quote and every other backslash stays. */
function words(content: string): string[] {
  const found: string[] = [];
  for (const match of content.matchAll(/"((?:[^"\\]|\\[^])*)"|[^\s"]\S*/g)) {
    found.push(match[1] === undefined ? match[0] : match[1].replaceAll('\\"', '"'));
  }
  return found;
}

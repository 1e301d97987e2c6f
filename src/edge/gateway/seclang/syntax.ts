import { Unsupported } from './directives';

/** `&ARGS:name`, `!ARGS:/re/`, `XML:/*`. `select`: null = all of the collection. */
export interface VariableCall {
  readonly name: string;
  readonly count: boolean;
  readonly exclude: boolean;
  readonly select: { readonly key: string } | { readonly pattern: string } | null;
}

export interface OperatorCall { readonly name: string; readonly argument: string; readonly negated: boolean }

export interface Action { readonly name: string; readonly value: string }

const collectionsWithPaths = new Set(['XML', 'JSON']);

/** The first argument of SecRule. */
export function readVariables(text: string): VariableCall[] {
  return splitOutside(text, '|').map((part) => {
    const found = /^\s*([!&]?)([A-Za-z_0-9]+)(?:[:.]([^]*))?$/.exec(part);
    if (!found) throw new Unsupported(`variable ${part}`);
    const [, mark, name = '', selector] = found;
    return { name: name.toUpperCase(), count: mark === '&', exclude: mark === '!', select: readSelector(name.toUpperCase(), selector) };
  });
}

function readSelector(name: string, text: string | undefined): VariableCall['select'] {
  if (text === undefined || text === '') return null;
  const bare = text.replace(/^'([^]*)'$/, '$1');
  const pattern = collectionsWithPaths.has(name) ? null : /^\/([^]*)\/$/.exec(bare);
  return pattern ? { pattern: pattern[1] ?? '' } : { key: bare.toLowerCase() };
}

/** The second argument of SecRule; without `@` it is a regular expression. */
export function readOperator(text: string): OperatorCall {
  const found = /^\s*(!?)\s*@([A-Za-z0-9]+)(?:\s+([^]*))?$/.exec(text);
  if (found) return { negated: found[1] === '!', name: (found[2] ?? '').toLowerCase(), argument: (found[3] ?? '').trim() };
  const negated = text.startsWith('!');
  return { negated, name: 'rx', argument: negated ? text.slice(1) : text };
}

/** The last argument of SecRule and SecAction. */
export function readActions(text: string): Action[] {
  return splitOutside(text, ',').filter((part) => part.trim() !== '').map((part) => {
    const [, name = '', value = ''] = /^\s*([A-Za-z]+)\s*(?::([^]*))?$/.exec(part) ?? [];
    if (name === '') throw new Unsupported(`action ${part}`);
    return { name: name.toLowerCase(), value: value.trim().replace(/^'([^]*)'$/, '$1').replaceAll("\\'", "'") };
  });
}

/** Splits at a separator that stands neither in single quotes nor between slashes of a selector. */
function splitOutside(text: string, separator: ',' | '|'): string[] {
  const parts: string[] = [];
  let start = 0;
  let closing: string | null = null;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === '\\') at += 1;
    else if (closing !== null) closing = char === closing ? null : closing;
    else if (char === "'") closing = "'";
    else if (separator === '|' && char === '/' && /[:.]$/.test(text.slice(0, at)) && !/\b(?:XML|JSON):$/i.test(text.slice(0, at))) closing = '/';
    else if (char === separator) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return [...parts, text.slice(start)];
}

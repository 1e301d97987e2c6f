import type { RuleMatch, SuggestedExclusion } from '../../gateway/ports';

/** What is hidden before anything is kept (contract gateway.md §4.6). */
const secretName = /pass|pwd|secret|token|auth|sess|key|card|cvv|cvc|credential|cookie|jwt|csrf|xsrf|\botp\b|\bpin\b|\bsid\b/i;
/** Variables whose text is one value with a name we see; all others may hold whole queries or bodies. */
const singleValue = /^(?:ARGS|ARGS_GET|ARGS_POST|REQUEST_HEADERS|RESPONSE_HEADERS):(.+)$/i;
const withoutValues = /^(?:ARGS_NAMES|ARGS_GET_NAMES|ARGS_POST_NAMES|REQUEST_HEADERS_NAMES|REQUEST_COOKIES_NAMES|FILES|FILES_NAMES|MULTIPART_[A-Z_]+|REQUEST_METHOD|REQUEST_PROTOCOL|REQUEST_FILENAME|REQUEST_BASENAME|REMOTE_ADDR|RESPONSE_STATUS)(?::.*)?$/i;
/** A secret name and its value within a text of another name: a query, a header, JSON. */
const secretPair = /((?:pass|pwd|secret|token|auth|sess|key|card|cvv|cvc|credential|cookie|jwt|csrf|xsrf)[\w.-]*["'\]]{0,2}\s*[=:]\s*["']?|\b(?:bearer|basic)\s+)[^\s"'&;,<>]+/gi;
const matchedMax = 128;
const hidden = '[masked]';

/** Free text of a client, at most `max` characters: as `maskedText`, and without the values of secret names. */
export function maskedProse(text: string, max: number): string {
  return maskedText(text.slice(0, 2 * max).replace(secretPair, `$1${hidden}`), max);
}

export function isSecretName(name: string): boolean {
  return secretName.test(name);
}

/** Text fit for a column: no card numbers, no NUL, no half characters, at most `max` characters. */
export function maskedText(text: string, max: number): string {
  const bounded = text.length > 2 * max ? text.slice(0, 2 * max) : text;
  return maskNumbers(bounded).replaceAll('\0', '\u{fffd}').slice(0, max).toWellFormed();
}

/**
 * Hides card numbers: 13 to 19 digits that pass Luhn's check (ISO/IEC 7812-1 annex B), in one group or in several that follow each
 * other. In a group too long for a card any part of it may be one.
 */
export function maskNumbers(text: string): string {
  return text.replace(/\d(?:[ +.-]?\d){12,}/g, (run) => (holdsCardNumber(run.split(/\D/)) ? hidden : run));
}

function holdsCardNumber(groups: readonly string[]): boolean {
  return groups.some((group, first) => (group.length > 19 ? partsOf(group) : groupsFrom(groups, first)).some(passesLuhn));
}

function groupsFrom(groups: readonly string[], first: number): string[] {
  const joined: string[] = [];
  for (let i = first, digits = ''; i < groups.length && digits.length < 20; i++) joined.push(digits += groups[i] ?? '');
  return joined.filter(({ length }) => length >= 13 && length <= 19);
}

function partsOf(digits: string): string[] {
  const parts: string[] = [];
  for (let start = 0; start + 13 <= digits.length; start++) for (let length = 13; length <= 19 && start + length <= digits.length; length++) parts.push(digits.slice(start, start + length));
  return parts;
}

function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charCodeAt(digits.length - 1 - i) - 48;
    const doubled = i % 2 === 0 ? digit : digit * 2;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** The query with its names; a value becomes its length: `q=[12]`. What is no name becomes its length too. */
export function queryOutline(rawQuery: string, max = 1_024): string | null {
  if (rawQuery === '') return null;
  const pairs = rawQuery.slice(0, 8_192).split('&').map((pair) => {
    const at = pair.indexOf('=');
    const name = at < 0 ? pair : pair.slice(0, at);
    const shown = /^[\w.~%[\]-]{1,64}$/.test(name) ? maskNumbers(name) : `[${name.length}]`;
    return at < 0 ? shown : `${shown}=[${pair.length - at - 1}]`;
  });
  return maskedText(pairs.join('&'), max);
}

/** A path whose parameters (`;name=value`, RFC 3986 §3.3) are hidden when their names are. */
export function maskedPath(path: string, max = 1_024): string {
  const shown = path.includes(';') ? path.replace(/;([^=;/]*)=([^;/]*)/g, (pair, name: string) => (isSecretName(name) ? `;${name}=${hidden}` : pair)) : path;
  return maskedText(shown, max);
}

/** Where a request came from, without query, fragment and user. */
export function maskedReferer(referer: string): string {
  return maskedPath(referer.replace(/[?#].*$/s, '').replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/]*@/i, '$1'), 512);
}

/** What a rule matched, when it is the value of a name that is not secret; otherwise its length. Bodies, and queries of referers, are never kept. */
export function maskedMatch({ variable, matched }: Pick<RuleMatch, 'variable' | 'matched'>): string {
  const name = singleValue.exec(variable)?.[1];
  const isShown = name === undefined ? withoutValues.test(variable) : !isSecretName(name) && !(/^referer$/i.test(name) && /[?#]/.test(matched));
  return isShown ? maskedProse(matched, matchedMax) : `[${matched.length}]`;
}

/** A suggestion that tells nothing hidden and can be excluded as it is: the path ends before its first parameter, control character or card number; a name that holds one is left out. */
export function shownSuggestion({ ruleId, target, pathPrefix }: SuggestedExclusion): SuggestedExclusion {
  const path = pathPrefix?.replace(/[;\p{Cc}].*$/su, '').toWellFormed() ?? null;
  const [collection = target] = target.split(':');
  return { ruleId, target: maskedText(target, 256) === target ? target : collection, pathPrefix: path === null ? null : maskNumbers(path).split(hidden)[0] ?? null };
}

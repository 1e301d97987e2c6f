import { compilePattern } from '../../gateway/rules/pattern';
import { kindOf, type Match, type MatchLeaf } from '../../gateway/schemas';
import { AddressSet } from './address-set';
import { unicode, type RequestView } from './request-view';

/** Whether a request fulfils a condition of a policy (contract gateway.md §4.1). */
export type Predicate = (request: RequestView) => boolean;

const always: Predicate = () => true;

/** One closure per condition, made once per version of a policy; null matches everything. Errors: a pattern that does not compile. */
export function compileMatch(match: Match | null): Predicate {
  if (match === null) return always;
  if ('all' in match) {
    const children = match.all.map(compileMatch);
    return (request) => children.every((child) => child(request));
  }
  if ('any' in match) {
    const children = match.any.map(compileMatch);
    return (request) => children.some((child) => child(request));
  }
  if ('not' in match) {
    const child = compileMatch(match.not);
    return (request) => !child(request);
  }
  return compileLeaf(match);
}

/** A missing field makes every op false except ne and not_in. */
function compileLeaf(leaf: MatchLeaf): Predicate {
  const isNegated = leaf.op === 'ne' || leaf.op === 'not_in';
  const holds = positive(isNegated ? { ...leaf, op: leaf.op === 'ne' ? 'eq' : 'in' } : leaf);
  return isNegated ? (request) => !holds(request) : holds;
}

function positive(leaf: MatchLeaf): Predicate {
  const kind = kindOf(leaf.field);
  switch (kind) {
    case 'ip': {
      const set = new AddressSet(texts(leaf.value));
      return (request) => set.has(request.address);
    }
    case 'boolean': return (request) => request.facts.isVerifiedBot === leaf.value;
    case 'number': {
      const read = numberField(leaf.field);
      const test = numberTest(leaf);
      return (request) => {
        const value = read(request);
        return value !== null && test(value);
      };
    }
    case 'string': {
      const read = textField(leaf);
      const test = textTest(leaf);
      return (request) => read(request).some(test);
    }
  }
}

function numberField(field: MatchLeaf['field']): (request: RequestView) => number | null {
  if (field === 'asn') return ({ facts }) => facts.asn;
  if (field === 'contentLength') return ({ facts }) => facts.contentLength;
  return (request) => request.bodySize;
}

function numberTest({ op, value }: MatchLeaf): (given: number) => boolean {
  const wanted = Array.isArray(value) ? value.map(Number) : [Number(value)];
  const [first = 0] = wanted;
  if (op === 'gt') return (given) => given > first;
  if (op === 'lt') return (given) => given < first;
  const set = new Set(wanted);
  return (given) => set.has(given);
}

/** The values of a text field; none when it is missing. */
function textField({ field, key = '' }: MatchLeaf): (request: RequestView) => readonly string[] {
  switch (field) {
    case 'header': return (request) => request.header(key.toLowerCase());
    case 'cookie': return (request) => request.cookie(key);
    case 'arg': return (request) => request.arg(key);
    case 'userAgent': return (request) => request.header('user-agent');
    case 'referer': return (request) => request.header('referer');
    case 'contentType': return (request) => request.header('content-type');
    case 'country': return ({ facts }) => present(facts.country);
    case 'tlsVersion': return ({ facts }) => present(facts.tlsVersion);
    case 'rawPath': return ({ facts }) => [unicode(facts.rawPath)];
    case 'query': return ({ facts }) => present(facts.rawQuery === '' ? null : unicode(facts.rawQuery));
    case 'path': return ({ facts }) => [facts.path];
    case 'method': return ({ facts }) => [facts.method];
    case 'scheme': return ({ facts }) => [facts.scheme];
    case 'host': return ({ facts }) => [facts.host];
    default: return ({ facts }) => [facts.httpVersion];
  }
}

function present(value: string | null): readonly string[] {
  return value === null ? [] : [value];
}

function textTest({ op, value, ignoreCase }: MatchLeaf): (given: string) => boolean {
  if (op === 'exists') return () => true;
  const [first = '', ...others] = texts(value);
  if (op === 'matches') {
    const pattern = compilePattern(first, { source: 'user', ignoreCase: ignoreCase ?? false });
    return (given) => pattern.test(given);
  }
  const fold = ignoreCase ? (text: string) => text.toLowerCase() : (text: string) => text;
  const wanted = fold(first);
  switch (op) {
    case 'contains': return (given) => fold(given).includes(wanted);
    case 'starts_with': return (given) => fold(given).startsWith(wanted);
    case 'ends_with': return (given) => fold(given).endsWith(wanted);
    case 'wildcard': {
      const matches = wildcard(wanted);
      return (given) => matches(fold(given));
    }
    default: {
      const set = new Set([first, ...others].map(fold));
      return (given) => set.has(fold(given));
    }
  }
}

/** `*` stands for any run of characters; the whole text must fit. Linear: the leftmost fit of each part is the best one. */
export function wildcard(pattern: string): (text: string) => boolean {
  const [head = '', ...rest] = pattern.split('*');
  const tail = rest.pop();
  if (tail === undefined) return (text) => text === head;
  return (text) => {
    if (text.length < head.length + tail.length || !text.startsWith(head) || !text.endsWith(tail)) return false;
    let at = head.length;
    for (const part of rest) {
      const found = text.indexOf(part, at);
      if (found < 0 || found + part.length > text.length - tail.length) return false;
      at = found + part.length;
    }
    return true;
  };
}

function texts(value: MatchLeaf['value']): readonly string[] {
  return typeof value === 'object' ? value.map(String) : [String(value)];
}

import { z } from 'zod';
import { AppError, invalid, type Issue } from '../core/errors';
import { isStorable, notStorable } from '../core/fields';
import { unknownKeyIssues } from './unknown-keys';

export type Parsed = { query: unknown; body: unknown };
type Schemas = { query?: z.ZodType | undefined; body?: z.ZodType | undefined; bodyOptional?: boolean | undefined };
type Raw = { query: Readonly<Record<string, string | string[] | undefined>>; body: Buffer };

/** Query and body checked together: one answer names every fault. Errors: `invalid_json`, `validation_error`. */
export function parseRequest(schemas: Schemas, raw: Raw): Parsed {
  const issues: Issue[] = [];
  const query = schemas.query ? check(schemas.query, onlyOnce(raw.query, schemas.query, issues), issues, 'query') : undefined;
  const body = parseBody(schemas, raw.body, issues);
  if (issues.length > 0) throw invalid(issues.filter((issue, index) => issues.findIndex((other) => other.path === issue.path && other.message === issue.message) === index));
  return { query, body };
}

/** A POST whose body the specification names "none" takes no body or `{}`. */
const noBody = z.strictObject({});

function parseBody(schemas: Schemas, raw: Buffer, issues: Issue[]): unknown {
  if (!schemas.body) return raw.length > 0 ? check(noBody, readJson(raw), issues, 'body') : undefined;
  if (raw.length === 0 && schemas.bodyOptional) return check(schemas.body, {}, issues, 'body');
  if (raw.length === 0) {
    issues.push({ path: '', message: 'a JSON object is required as the body' });
    return undefined;
  }
  const value = readJson(raw);
  issues.push(...unstorable(value));
  return check(schemas.body, value, issues, 'body');
}

/** One issue per string or key PostgreSQL could not store, whatever its schema says. A loop: a body may be nested deeper than the stack. */
function unstorable(body: unknown): Issue[] {
  const issues: Issue[] = [];
  const waiting: { value: unknown; path: string }[] = [{ value: body, path: '' }];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value, path } = next;
    if (typeof value === 'string' && !isStorable(value)) issues.push({ path, message: notStorable });
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, member] of Object.entries(value)) {
      if (!isStorable(key)) issues.push({ path, message: 'a key must be well-formed Unicode without U+0000' });
      waiting.push({ value: member, path: path === '' ? key : `${path}.${key}` });
    }
  }
  return issues;
}

function readJson(raw: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(raw));
  } catch (error) {
    throw new AppError('invalid_json', 'The body is not valid JSON in UTF-8.', {}, { cause: error });
  }
}

function check(schema: z.ZodType, value: unknown, issues: Issue[], where: 'query' | 'body'): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  for (const issue of result.error.issues) {
    if (issue.code === 'unrecognized_keys') issues.push(...unknownKeyIssues(schema, issue.path, issue.keys));
    else issues.push({ path: issue.path.join('.'), message: messageOf(issue, valueAt(value, issue.path), where) });
  }
  return undefined;
}

/** What is wrong in the words of our own rules; zod's where a rule has none. */
function messageOf(issue: z.core.$ZodIssue, given: unknown, where: 'query' | 'body'): string {
  const atRoot = issue.path.length === 0 && where === 'body';
  if ((issue.code === 'invalid_type' || issue.code === 'invalid_value') && given === undefined && !atRoot) return 'is required';
  if (issue.code === 'invalid_type' && issue.expected === 'never') return issue.message;
  if (issue.code === 'invalid_type') return atRoot ? 'the body must be a JSON object' : `must be ${article(issue.expected)}`;
  if (issue.code === 'invalid_value') return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`;
  return issue.message;
}

function article(kind: string): string {
  return kind === 'array' || kind === 'object' || kind === 'int' ? `an ${kind === 'int' ? 'integer' : kind}` : `a ${kind}`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((current, key) => (typeof current === 'object' && current !== null ? Reflect.get(current, key) : undefined), value);
}

/** A query key may stand once; unknown keys are ignored. */
function onlyOnce(query: Raw['query'], schema: z.ZodType, issues: Issue[]): Record<string, string> {
  const known = schema instanceof z.ZodObject ? Object.keys(schema.shape) : Object.keys(query);
  const values: Record<string, string> = {};
  for (const key of known) {
    const value = query[key];
    if (typeof value === 'string') values[key] = value;
    else if (Array.isArray(value)) issues.push({ path: key, message: 'may be given only once' });
    if (typeof value === 'string' && !isStorable(value)) issues.push({ path: key, message: notStorable });
  }
  return values;
}

import type { RequestFacts, ResponseFacts } from '../../../gateway/ports';
import { type BodyHeaders, parseBody, plainBody, processorOf } from './body';
import { emptyBody, type Excess, type Pair, type ParsedBody, type Processor } from './body/types';
import { parseUrlencoded } from './body/urlencoded';
import type { Text, Texts } from './text';

/** One value that rules look at. `key` is empty for what is not a collection. */
export interface Target { readonly collection: string; readonly key: string; readonly text: Text }

/** The state of one request while its rules run: what was read from it, TX, and what matched. */
export class Transaction {
  readonly tx = new Map<string, string>();
  readonly headers: readonly Pair[];
  readonly query: readonly Pair[];
  readonly cookies: readonly Pair[];
  readonly bodyHeaders: BodyHeaders;
  processor: Processor;
  forceRequestBody = false;
  body: ParsedBody = emptyBody;
  bodyText = '';
  bodyError: string | null = null;
  response: ResponseFacts | null = null;
  /** Values by variable, as long as they stay the same. */
  readonly collected = new Map<string, Target[]>();
  matched: Target | null = null;
  matchedAll: Target[] = [];
  readonly excess = new Set<Excess>();
  /** Rules and targets that ctl took out for this request. */
  readonly removedRules: ((id: number, tags: readonly string[]) => boolean)[] = [];
  readonly removedTargets: { readonly applies: (id: number, tags: readonly string[]) => boolean; readonly collection: string; readonly key: string | null }[] = [];
  engineOff = false;

  constructor(readonly facts: RequestFacts, readonly texts: Texts) {
    const headers = facts.headers.map(([name, value]) => ({ name, value }));
    this.headers = headers.some(({ name }) => name === 'host') ? headers : [{ name: 'host', value: facts.host }, ...headers];
    const query = parseUrlencoded(facts.rawQuery);
    if (query.excess) this.excess.add('arguments');
    this.query = query.args;
    this.cookies = this.headers.filter(({ name }) => name === 'cookie').flatMap(({ value }) => readCookies(value));
    this.bodyHeaders = { contentType: this.header('content-type'), contentEncoding: this.header('content-encoding') };
    this.processor = processorOf(this.bodyHeaders.contentType);
  }

  header(name: string): string {
    return this.headers.find((header) => header.name === name)?.value ?? '';
  }

  /** Between phases 1 and 2: reads the body with the processor that the headers, or a rule, chose. */
  readBody(): void {
    const { body, bodyComplete } = this.facts;
    if (!body || body.length === 0) return;
    const plain = plainBody(body, this.bodyHeaders.contentEncoding);
    this.bodyText = plain.text;
    this.body = parseBody(plain.text, this.processor, this.bodyHeaders.contentType, bodyComplete && plain.excess.length === 0);
    this.bodyError = plain.error ?? this.body.error;
    for (const excess of [...plain.excess, ...this.body.excess]) this.excess.add(excess);
    if (this.query.length + this.body.args.length > 1_000) this.excess.add('arguments');
  }
}

/** RFC 6265 §5.4: pairs separated by semicolons, values as they are. */
function readCookies(header: string): Pair[] {
  return header.split(';').flatMap((part) => {
    const trimmed = part.trim();
    const at = trimmed.indexOf('=');
    if (trimmed === '') return [];
    return [{ name: at < 0 ? trimmed : trimmed.slice(0, at).trim(), value: at < 0 ? '' : trimmed.slice(at + 1).trim() }];
  });
}

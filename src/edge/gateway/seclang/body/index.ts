import { decodeBody } from './content-encoding';
import { parseJson } from './json';
import { parseMultipart } from './multipart';
import { emptyBody, type Excess, type Pair, type ParsedBody, type Processor } from './types';
import { parseUrlencoded } from './urlencoded';
import { parseXml } from './xml';

export interface BodyHeaders { readonly contentType: string; readonly contentEncoding: string }

const sequences: ReadonlySet<string> = new Set(['application/x-ndjson', 'application/ndjson', 'application/jsonl', 'application/json-seq']);
const typeOf = (contentType: string) => (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();

/** The processor that a Content-Type asks for. */
export function processorOf(contentType: string): Processor {
  const type = typeOf(contentType);
  if (type === 'application/x-www-form-urlencoded') return 'URLENCODED';
  if (type === 'multipart/form-data') return 'MULTIPART';
  if (type === 'application/json' || type === 'text/json' || type === 'application/csp-report' || sequences.has(type) || /^[^/]+\/[^/]+\+json$/.test(type)) return 'JSON';
  if (type === 'application/xml' || type === 'text/xml' || /^[^/]+\/[^/]+\+xml$/.test(type)) return 'XML';
  return '';
}

/** The body as latin1, without its content encodings. */
export function plainBody(body: Buffer, contentEncoding: string): { text: string; excess: readonly Excess[]; error: string | null } {
  if (contentEncoding === '') return { text: body.toString('latin1'), excess: [], error: null };
  const decoded = decodeBody(body, contentEncoding);
  return { text: decoded.body.toString('latin1'), excess: decoded.excess ? ['decoding'] : [], error: decoded.failed ? 'the content encoding cannot be undone' : null };
}

/** Reads the body with one processor. Never throws; what cannot be read is an `error`. */
export function parseBody(text: string, processor: Processor, contentType: string, complete: boolean): ParsedBody {
  switch (processor) {
    case '': return { ...emptyBody, args: plainArguments(text, typeOf(contentType), complete) };
    case 'URLENCODED': {
      const { args, excess } = parseUrlencoded(text);
      return { ...emptyBody, processor, args, excess: excess ? ['arguments'] : [] };
    }
    case 'JSON': return { ...emptyBody, processor, ...parseJson(text, complete, sequences.has(typeOf(contentType))) };
    case 'XML': {
      const { text: content, attributes, error, excess } = parseXml(text, complete);
      return { ...emptyBody, processor, xml: { text: content, attributes }, error, excess };
    }
    case 'MULTIPART': {
      const { flags, ...content } = parseMultipart(text, contentType, complete);
      const mixed = flags.includes('CRLF_LINE') && flags.includes('LF_LINE') ? ['CRLF_LF_LINES'] : [];
      return { ...emptyBody, processor, ...content, multipartFlags: [...flags.filter((flag) => flag !== 'CRLF_LINE'), ...mixed] };
    }
  }
}

/** Text without a processor, or of no type at all, is one argument `body`; where it is JSON, what some servers read whatever its type, the arguments of that. */
function plainArguments(text: string, type: string, complete: boolean): readonly Pair[] {
  if (text === '' || !(type === '' || type.startsWith('text/') || type === 'application/graphql')) return [];
  const json = /^\s*[{[]/.test(text) ? parseJson(text, complete) : null;
  return json && json.error === null && json.excess.length === 0 ? json.args : [{ name: 'body', value: text }];
}

import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import type { RequestFacts } from '../../src/gateway/ports';

/** A request of the corpora, as it goes over the wire. Text is latin1 bytes of UTF-8. */
export interface CorpusRequest {
  readonly name: string;
  readonly method: string;
  readonly target: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer | null;
}

const folder = resolve('test/corpus');
const bytes = (text: string) => Buffer.from(text, 'utf8').toString('latin1');
/** As forms encode; what is encoded already (`%0d`) stays. */
const encoded = (text: string) => encodeURIComponent(text).replace(/%25(?=[0-9a-fA-F]{2})/g, '%').replaceAll('%20', '+').replaceAll("'", '%27');
const boundary = '----WebKitFormBoundary7MA4YWxkTrZu0gW';

const browser: readonly (readonly [string, string])[] = [
  ['host', 'shop.example.com'], ['connection', 'keep-alive'], ['upgrade-insecure-requests', '1'],
  ['user-agent', 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36'],
  ['accept', 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'], ['accept-encoding', 'gzip, deflate, br'],
  ['accept-language', 'en-US,en;q=0.9,de;q=0.8'], ['referer', 'https://shop.example.com/start'], ['cookie', 'session=9f8e7d6c5b4a; theme=dark'],
];

interface Parts { readonly name: string; readonly method?: string; readonly target: string; readonly headers?: Readonly<Record<string, string>>; readonly type?: string; readonly body?: string }

function request({ name, method, target, headers = {}, type, body }: Parts): CorpusRequest {
  const buffer = body === undefined ? null : Buffer.from(body, 'utf8');
  const lower = new Map(Object.entries(headers).map(([key, value]) => [key.toLowerCase(), bytes(value)]));
  const plain = browser.map(([key, value]) => [key, lower.get(key) ?? value] as const);
  const added = [...lower].filter(([key]) => !browser.some(([known]) => known === key));
  const entity = buffer ? [['content-type', lower.get('content-type') ?? type ?? ''] as const, ['content-length', String(buffer.length)] as const] : [];
  return { name, method: method ?? (buffer ? 'POST' : 'GET'), target, headers: [...plain, ...added.filter(([key]) => !buffer || key !== 'content-type'), ...entity], body: buffer };
}

const form = 'application/x-www-form-urlencoded';
const part = (disposition: string, content: string) => `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`;
const multipart = (...parts: string[]) => ({ type: `multipart/form-data; boundary=${boundary}`, body: `${parts.join('')}--${boundary}--\r\n` });

function attack(line: string): CorpusRequest {
  const at = line.indexOf(' ');
  const [where = '', header = ''] = line.slice(0, at).split(':');
  const value = line.slice(at + 1);
  const name = line;
  switch (where) {
    case 'query': return request({ name, target: `/item?id=${encoded(value)}&page=2` });
    case 'name': return request({ name, target: `/item?${encoded(value)}=1` });
    case 'foreign': return request({ name, target: `/account?${value.replaceAll(' ', '+')}`, headers: { referer: 'https://evil.example/start' } });
    case 'path': return request({ name, target: value });
    case 'method': return request({ name, target: '/', method: value });
    case 'header': return request({ name, target: '/', headers: { [header]: value }, ...(header === 'Content-Type' ? { body: 'a=b' } : {}) });
    case 'cookie': return request({ name, target: '/account', headers: { cookie: `session=9f8e7d6c5b4a; last=${value.includes(';') ? encoded(value) : value}` } });
    case 'form': return request({ name, target: '/comment', type: form, body: `name=Anna&text=${encoded(value)}` });
    case 'json': return request({ name, target: '/api/v1/comments', type: 'application/json', body: JSON.stringify({ author: 'Anna', text: value }) });
    case 'xml': return request({ name, target: '/soap', type: 'application/xml', body: value });
    case 'upload': return request({ name, target: '/upload', ...multipart(part('name="caption"', 'hello'), part(`name="file"; filename="${value}"`, 'x')) });
    default: throw new Error(`no such place: ${line}`);
  }
}

const lines = (file: string) => readFileSync(resolve(folder, file), 'utf8').split('\n').filter((line) => line !== '');

/** Attacks by class. */
export function attacks(): ReadonlyMap<string, readonly CorpusRequest[]> {
  const files = readdirSync(resolve(folder, 'attacks')).sort();
  return new Map(files.map((file) => [file.replace('.txt', ''), lines(`attacks/${file}`).map(attack)]));
}

/** What the Core Rule Set 3.3.4 lets pass, and ordinary requests that it blocks, at level 1: ours does neither. */
export function beyondCoreRules(): { readonly attacks: readonly CorpusRequest[]; readonly benign: readonly CorpusRequest[] } {
  return { attacks: lines('beyond-crs/attacks.txt').map(attack), benign: lines('beyond-crs/benign.jsonl').map(benignRequest) };
}

const benignLine = z.object({
  w: z.enum(['query', 'form', 'json', 'multipart', 'xml', 'get', 'raw']), p: z.string(), n: z.string().default('q'), v: z.string().default(''),
  m: z.string().optional(), c: z.string().optional(), r: z.string().optional(), u: z.string().optional(), t: z.string().optional(), b: z.string().optional(),
});

function benignRequest(line: string): CorpusRequest {
  const { w, p, n, v, m, c, r, u, t, b } = benignLine.parse(JSON.parse(line));
  const common = { name: line, target: p.replace(/[^\x21-\x7e]/g, encodeURIComponent), ...(m ? { method: m } : {}), headers: { ...(c ? { cookie: c } : {}), ...(r ? { referer: r } : {}), ...(u ? { 'user-agent': u } : {}) } };
  const value = encodeURIComponent(v).replaceAll('%20', '+');
  switch (w) {
    case 'get': return request(common);
    case 'query': return request({ ...common, target: `${p}?${n}=${value}&page=1` });
    case 'form': return request({ ...common, type: form, body: `name=Anna&${n}=${value}&send=1` });
    case 'json': return request({ ...common, type: 'application/json', body: JSON.stringify({ id: 7, [n]: v, active: true }) });
    case 'multipart': return request({ ...common, ...multipart(part(`name="${n}"`, v), part('name="photo"; filename="holiday.jpg"', 'jpeg')) });
    case 'xml': return request({ ...common, type: 'application/xml', body: `<?xml version="1.0"?><order><${n}>${v.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</${n}></order>` });
    case 'raw': return request({ ...common, type: t ?? '', body: b ?? '' });
  }
}

/** Ordinary requests, none of which may be blocked. */
export function benign(): readonly CorpusRequest[] {
  return readdirSync(resolve(folder, 'benign')).sort().flatMap((file) => lines(`benign/${file}`).map(benignRequest));
}

/** What the gateway would hand to the engine. */
export function factsOf({ method, target, headers, body }: CorpusRequest): RequestFacts {
  const at = target.indexOf('?');
  const rawPath = at < 0 ? target : target.slice(0, at);
  return {
    zoneId: 'zone_1', requestId: 'req_1', receivedAt: 0, clientIp: '203.0.113.9', country: null, asn: null, isVerifiedBot: false, method, scheme: 'https', host: 'shop.example.com',
    rawPath, path: rawPath, rawQuery: at < 0 ? '' : target.slice(at + 1), httpVersion: '1.1', tlsVersion: '1.3', headers, contentLength: body?.length ?? null, body, bodyComplete: true,
  };
}

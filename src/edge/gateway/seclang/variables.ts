import { urlDecode } from './transformations/decode';
import type { Pair } from './body/types';
import { Unsupported } from './directives';
import type { Target, Transaction } from './transaction';

/** What a variable of contract gateway.md §4.7 holds for one request. */
export interface Variable {
  read(state: Transaction): Target[];
  /** Changes while rules run, so it is read anew each time. */
  readonly volatile: boolean;
}

type Read = (state: Transaction) => readonly Pair[];
type Scalar = (state: Transaction) => string | null;

const names = (read: Read): Read => (state) => read(state).map(({ name }) => ({ name, value: name }));
const size = (pairs: readonly Pair[]) => pairs.reduce((sum, { name, value }) => sum + name.length + value.length, 0);
const all = (state: Transaction): readonly Pair[] => (state.body.args.length === 0 ? state.query : [...state.query, ...state.body.args]);
const headers: Read = (state) => state.headers;
const cookies: Read = (state) => state.cookies;
const query: Read = (state) => state.query;
const posted: Read = (state) => state.body.args;
const none: Read = () => [];
const responseHeaders: Read = (state) => state.response?.headers.map(([name, value]) => ({ name, value })) ?? [];
const protocol = ({ facts }: Transaction) => `HTTP/${facts.httpVersion === '2' ? '2.0' : facts.httpVersion}`;
const rawUri = ({ facts }: Transaction) => (facts.rawQuery === '' ? facts.rawPath : `${facts.rawPath}?${facts.rawQuery}`);
/** Percent signs only: a plus stays in a path. */
const decodedPath = ({ facts }: Transaction) => (facts.rawPath.includes('%') ? urlDecode(facts.rawPath.replaceAll('+', '%2b')) : facts.rawPath);
const responseHeader = (state: Transaction, name: string) => responseHeaders(state).find((pair) => pair.name === name)?.value ?? null;
const flag = (state: Transaction, name: string) => (state.body.multipartFlags.includes(name) ? '1' : '0');

const repeated: Readonly<Record<string, Read>> = {
  REQUEST_HEADERS: headers, REQUEST_HEADERS_NAMES: names(headers), REQUEST_COOKIES: cookies, REQUEST_COOKIES_NAMES: names(cookies),
};

const collections: Readonly<Record<string, Read>> = {
  ARGS: all, ARGS_NAMES: names(all), ARGS_GET: query, ARGS_GET_NAMES: names(query), ARGS_POST: posted, ARGS_POST_NAMES: names(posted),
  FILES: (state) => state.body.files.map(({ field, fileName }) => ({ name: field, value: fileName })),
  FILES_NAMES: (state) => state.body.files.map(({ field }) => ({ name: field, value: field })),
  FILES_SIZES: (state) => state.body.files.map(({ field, size: bytes }) => ({ name: field, value: String(bytes) })),
  FILES_TMPNAMES: none, FILES_TMP_CONTENT: none,
  MULTIPART_PART_HEADERS: (state) => state.body.partHeaders,
  MULTIPART_FILENAME: (state) => state.body.files.map(({ field, fileName }) => ({ name: field, value: fileName })),
  MULTIPART_NAME: (state) => (state.body.processor === 'MULTIPART' ? [...state.body.args, ...state.body.files.map(({ field }) => ({ name: field, value: field }))].map(({ name }) => ({ name, value: name })) : []),
  RESPONSE_HEADERS: responseHeaders, RESPONSE_HEADERS_NAMES: names(responseHeaders),
  XML: (state) => (state.body.xml ? [{ name: '/*', value: state.body.xml.text }, ...state.body.xml.attributes.map((value) => ({ name: '//@*', value }))] : []),
  ENGINE_EXCESS: (state) => [...state.excess].map((name) => ({ name, value: '1' })),
  // Persistent collections and the outside world are empty (contract gateway.md §4.7).
  IP: none, GLOBAL: none, SESSION: none, USER: none, RESOURCE: none, GEO: none, ENV: none, RULE: none,
};

const scalars: Readonly<Record<string, Scalar>> = {
  ARGS_COMBINED_SIZE: (state) => String(size(all(state))),
  FILES_COMBINED_SIZE: (state) => String(state.body.files.reduce((sum, file) => sum + file.size, 0)),
  REQUEST_METHOD: ({ facts }) => facts.method, REQUEST_PROTOCOL: protocol, REQUEST_LINE: (state) => `${state.facts.method} ${rawUri(state)} ${protocol(state)}`,
  REQUEST_URI: (state) => (state.facts.rawQuery === '' ? decodedPath(state) : `${decodedPath(state)}?${urlDecode(state.facts.rawQuery.replaceAll('+', '%2b'))}`),
  REQUEST_URI_RAW: rawUri, QUERY_STRING: ({ facts }) => facts.rawQuery, PATH_INFO: decodedPath, REQUEST_FILENAME: decodedPath,
  REQUEST_BASENAME: (state) => { const path = decodedPath(state); return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1); },
  REQUEST_BODY: (state) => (state.bodyText !== '' && (state.processor !== 'MULTIPART' || state.forceRequestBody) ? state.bodyText : null),
  REQUEST_BODY_LENGTH: ({ facts }) => String(facts.body?.length ?? 0),
  FULL_REQUEST_LENGTH: ({ facts }) => String(facts.contentLength ?? 0),
  REQBODY_PROCESSOR: (state) => state.processor, REQBODY_ERROR: (state) => (state.bodyError === null ? '0' : '1'), REQBODY_ERROR_MSG: (state) => state.bodyError ?? '',
  REQBODY_PROCESSOR_ERROR: (state) => (state.bodyError === null ? '0' : '1'), REQBODY_PROCESSOR_ERROR_MSG: (state) => state.bodyError ?? '',
  MULTIPART_STRICT_ERROR: (state) => (state.body.multipartFlags.some((name) => !harmless.has(name)) ? '1' : '0'),
  MULTIPART_CRLF_LF_LINES: (state) => flag(state, 'CRLF_LF_LINES'),
  REMOTE_ADDR: ({ facts }) => facts.clientIp, REMOTE_HOST: ({ facts }) => facts.clientIp, REMOTE_PORT: () => '0', REMOTE_USER: () => null,
  SERVER_NAME: ({ facts }) => facts.host, SERVER_ADDR: () => null, SERVER_PORT: ({ facts }) => (facts.scheme === 'https' ? '443' : '80'), AUTH_TYPE: () => null,
  UNIQUE_ID: ({ facts }) => facts.requestId, DURATION: ({ facts }) => String(Math.max(0, Date.now() - facts.receivedAt) * 1_000),
  INBOUND_DATA_ERROR: () => '0', OUTBOUND_DATA_ERROR: () => '0', URLENCODED_ERROR: () => '0', STATUS: (state) => String(state.response?.status ?? 0),
  RESPONSE_STATUS: (state) => (state.response ? String(state.response.status) : null), RESPONSE_PROTOCOL: protocol,
  RESPONSE_BODY: (state) => state.response?.body?.toString('latin1') ?? null, STATUS_LINE: (state) => `${protocol(state)} ${state.response?.status ?? 0}`,
  RESPONSE_CONTENT_TYPE: (state) => responseHeader(state, 'content-type'), RESPONSE_CONTENT_LENGTH: (state) => String(state.response?.body?.length ?? 0),
  MODSEC_BUILD: () => '030000000', SESSIONID: () => '', USERID: () => '', WEBAPPID: () => '',
};

/** Forms that clients in use send and that everybody reads alike. */
const harmless: ReadonlySet<string> = new Set(['LF_LINE', 'BOUNDARY_QUOTED']);
const short = new Set(['REQUEST_METHOD', 'REQUEST_PROTOCOL', 'REMOTE_ADDR', 'REQBODY_PROCESSOR', 'REQBODY_ERROR', 'MULTIPART_STRICT_ERROR', 'RESPONSE_STATUS']);
const multipartFlag = /^MULTIPART_(BOUNDARY_QUOTED|BOUNDARY_WHITESPACE|DATA_BEFORE|DATA_AFTER|HEADER_FOLDING|LF_LINE|MISSING_SEMICOLON|INVALID_QUOTING|INVALID_PART|INVALID_HEADER_FOLDING|FILE_LIMIT_EXCEEDED|UNMATCHED_BOUNDARY|SEMICOLON_MISSING)$/;

/** The variable of a name in upper case. Throws Unsupported. */
export function variableOf(name: string): Variable {
  const again = repeated[name];
  if (again) return once(name, (state) => again(state).map((pair) => ({ collection: name, key: pair.name, text: state.texts.repeatedly(pair.value) })));
  const collection = collections[name];
  if (collection) return once(name, (state) => collection(state).map((pair) => ({ collection: name, key: pair.name, text: state.texts.of(pair.value) })));
  const own = changing[name];
  if (own) return { volatile: true, read: own };
  const found = multipartFlag.exec(name);
  const scalar = scalars[name] ?? (found ? (state: Transaction) => flag(state, found[1] ?? '') : undefined);
  if (!scalar) throw new Unsupported(`variable ${name}`);
  return once(name, (state) => one(state, name, scalar(state)));
}

/** Read once a phase. */
function once(name: string, read: (state: Transaction) => Target[]): Variable {
  return {
    volatile: false,
    read: (state) => {
      let targets = state.collected.get(name);
      if (!targets) state.collected.set(name, targets = read(state));
      return targets;
    },
  };
}

function one(state: Transaction, name: string, value: string | null): Target[] {
  if (value === null) return [];
  return [{ collection: name, key: '', text: short.has(name) ? state.texts.repeatedly(value) : state.texts.of(value) }];
}

const label = ({ collection, key }: Target) => (key === '' ? collection : `${collection}:${key}`);

const changing: Readonly<Record<string, (state: Transaction) => Target[]>> = {
  TX: (state) => [...state.tx].map(([key, value]) => ({ collection: 'TX', key, text: state.texts.repeatedly(value) })),
  MATCHED_VAR: (state) => (state.matched ? [{ collection: 'MATCHED_VAR', key: '', text: state.matched.text }] : []),
  MATCHED_VAR_NAME: (state) => (state.matched ? one(state, 'MATCHED_VAR_NAME', label(state.matched)) : []),
  MATCHED_VARS: (state) => state.matchedAll.map((target) => ({ collection: 'MATCHED_VARS', key: label(target), text: target.text })),
  MATCHED_VARS_NAMES: (state) => state.matchedAll.map((target) => ({ collection: 'MATCHED_VARS_NAMES', key: label(target), text: state.texts.of(label(target)) })),
};

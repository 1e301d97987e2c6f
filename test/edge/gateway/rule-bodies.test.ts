import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { parseBody, plainBody, processorOf } from '../../../src/edge/gateway/seclang/body';

const args = (...parsed: Parameters<typeof parseBody>) => parseBody(...parsed).args.map(({ name, value }) => `${name}=${value}`);

test.each([
  ['application/x-www-form-urlencoded; charset=utf-8', 'URLENCODED'], ['multipart/form-data; boundary=x', 'MULTIPART'], ['application/json', 'JSON'], ['APPLICATION/PROBLEM+JSON', 'JSON'],
  ['text/xml', 'XML'], ['application/csp-report', 'JSON'], ['application/x-ndjson', 'JSON'], ['application/soap+xml', 'XML'], ['text/plain', ''], ['', ''], ['application/octet-stream', ''],
])('%s is read as %s', (type, processor) => expect(processorOf(type)).toBe(processor));

test('forms: decoded once, repeated and empty names kept', () => {
  expect(args('a=1&a=2&=x&b&c=%3D+%26&%41=%zz', 'URLENCODED', '', true)).toEqual(['a=1', 'a=2', '=x', 'b=', 'c== &', 'A=%zz']);
  expect(parseBody(Array.from({ length: 1_001 }, (_, at) => `a${at}=1`).join('&'), 'URLENCODED', '', true)).toMatchObject({ excess: ['arguments'], error: null });
  expect(args(`${'&'.repeat(9_000)}x=1`, 'URLENCODED', '', true)).toEqual(['x=1']);
});

test('text is one argument, JSON whatever its type the arguments of that', () => {
  expect(args('some text', '', 'text/plain; charset=utf-8', true)).toEqual(['body=some text']);
  expect(args(' {"a":"<script>"}', '', 'text/plain', true)).toEqual(['json.a=<script>']);
  expect(args('{"a":', '', '', true)).toEqual(['body={"a":']);
  expect(args('\x00\x01', '', 'application/octet-stream', true)).toEqual([]);
});

describe('JSON', () => {
  const read = (text: string, complete = true) => parseBody(text, 'JSON', '', complete);
  test('scalars are arguments named by their path', () => {
    expect(args('{"a":{"b":["x",1,{"c":null}]},"d":true,"a":"again"}', 'JSON', '', true)).toEqual(['json.a.b.array_0=x', 'json.a.b.array_1=1', 'json.a.b.array_2.c=', 'json.d=true', 'json.a=again']);
    expect(args('"bare"', 'JSON', '', true)).toEqual(['json=bare']);
  });
  test('a byte order mark is passed over, lines of documents are read where the type says so', () => {
    expect(args('\xef\xbb\xbf{"a":1}', 'JSON', 'application/json', true)).toEqual(['json.a=1']);
    expect(args('{"a":1}\n{"a":2}\n', 'JSON', 'application/x-ndjson', true)).toEqual(['json.a=1', 'json.a=2']);
    expect(read('{"a":1}\n{"a":2}').error).not.toBeNull();
  });
  test('escapes become bytes', () => expect(args('{"k\\u0065y":"\\u00e9\\ud83d\\ude00\\n\\/\\\\"}', 'JSON', '', true)).toEqual([`json.key=\xc3\xa9\xf0\x9f\x98\x80\n/\\`]));
  test.each(['{', '[1,]', '{"a" 1}', "{'a':1}", '01', 'tru', '"\n"', '"\\x41"', '{} x', '[1}', 'NaN'])('%j is an error', (text) => expect(read(text).error).not.toBeNull());
  test.each(['', '  ', '{}', '[]', '0', '-1.5e3', '"a"', 'null', ' [ 1 , 2 ] '])('%j is not', (text) => expect(read(text).error).toBeNull());
  test('a cut body gives what came before the cut', () => {
    const cut = read('{"a":"1","b":{"c":"<script>","d":"unfin', false);
    expect(cut.error).toBeNull();
    expect(cut.args.map(({ value }) => value)).toEqual(['1', '<script>']);
  });
  test('what goes beyond the limits is excess, not an error', () => {
    expect(read('['.repeat(65) + ']'.repeat(65))).toMatchObject({ error: null, excess: ['depth'] });
    expect(read(`[${Array.from({ length: 1_001 }, () => '1').join()}]`)).toMatchObject({ error: null, excess: ['arguments'] });
    expect(read('['.repeat(100_000)).excess).toEqual(['depth']);
  });
});

describe('XML', () => {
  const read = (text: string, complete = true) => parseBody(text, 'XML', '', complete);
  test('text and attributes, entities and CDATA resolved', () => {
    expect(read('<?xml version="1.0"?><!-- c --><a x="1&amp;2" y=\'z\'>t<b><![CDATA[<raw>]]></b>&lt;&#x41;&#66;<c/></a>')).toMatchObject({ error: null, xml: { text: 't<raw><AB', attributes: ['1&2', 'z'] } });
  });
  test('own entities are not expanded', () => {
    expect(read('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>')).toMatchObject({ error: null, xml: { text: '&x;' } });
  });
  test.each(['<a>', '<a></b>', '<a x=1></a>', '<a/><b/>', 'text', '<a b="<"></a>', ''])('%j is an error', (text) => expect(read(text).error).not.toBeNull());
  test('a cut document is no error', () => expect(read('<a><b>text</b><c at', false)).toMatchObject({ error: null, xml: { text: 'text<c at' } }));
  test('depth is limited', () => expect(read(`${'<a>'.repeat(65)}${'</a>'.repeat(65)}`)).toMatchObject({ excess: ['depth'] }));
});

describe('multipart', () => {
  const type = 'multipart/form-data; boundary=XX';
  const part = (head: string, body: string) => `--XX\r\n${head}\r\n\r\n${body}\r\n`;
  const field = (name: string, value: string) => part(`Content-Disposition: form-data; name="${name}"`, value);
  const read = (body: string, contentType = type, complete = true) => parseBody(body, 'MULTIPART', contentType, complete);

  test('fields are arguments, files are not', () => {
    const parsed = read(`${field('a', '1')}${part('Content-Disposition: form-data; name="f"; filename="x.php"\r\nContent-Type: text/plain', 'body')}--XX--\r\n`);
    expect(parsed).toMatchObject({ args: [{ name: 'a', value: '1' }], files: [{ field: 'f', fileName: 'x.php', size: 4 }], multipartFlags: [], error: null });
    expect(parsed.partHeaders.map(({ name, value }) => `${name}|${value}`)).toContain('f|Content-Type: text/plain');
  });

  test.each([
    ['data before the first part', `x\r\n${field('a', '1')}--XX--\r\n`, type, 'DATA_BEFORE'],
    ['data after the last', `${field('a', '1')}--XX--\r\nmore`, type, 'DATA_AFTER'],
    ['no last boundary', field('a', '1'), type, 'UNMATCHED_BOUNDARY'],
    ['folded headers', `${part('Content-Disposition: form-data;\r\n name="a"', '1')}--XX--`, type, 'HEADER_FOLDING'],
    ['a bare name that is no token', `${part('Content-Disposition: form-data; name=a(b', '1')}--XX--`, type, 'INVALID_QUOTING'],
    ['names in single quotes', `${part("Content-Disposition: form-data; name='a'", '1')}--XX--`, type, 'INVALID_QUOTING'],
    ['two names', `${part('Content-Disposition: form-data; name="a"; name="b"', '1')}--XX--`, type, 'INVALID_PART'],
    ['another disposition', `${part('Content-Disposition: attachment; name="a"', '1')}--XX--`, type, 'INVALID_PART'],
    ['filename* in an unknown charset', `${part('Content-Disposition: form-data; name="a"; filename*=utf-7\'\'x', '1')}--XX--`, type, 'INVALID_PART'],
    ['a header twice', `${part('Content-Disposition: form-data; name="a"\r\nContent-Disposition: form-data; name="b"', '1')}--XX--`, type, 'HEADER_REPEATED'],
    ['a header that is none', `${part('Content-Disposition: form-data; name="a"\r\nnonsense', '1')}--XX--`, type, 'INVALID_HEADER'],
    ['mixed line ends', `--XX\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--XX--`, type, 'CRLF_LF_LINES'],
    ['a quoted boundary', `${field('a', '1')}--XX--`, 'multipart/form-data; boundary="XX"', 'BOUNDARY_QUOTED'],
    ['two boundaries', `${field('a', '1')}--XX--`, 'multipart/form-data; boundary=XX; boundary=YY', 'BOUNDARY_REPEATED'],
    ['something behind a boundary', '--XXY\r\n', type, 'INVALID_BOUNDARY'],
  ])('%s raises a flag', (_what, body, contentType, flag) => expect(read(body, contentType).multipartFlags).toContain(flag));

  test('a missing boundary is an error', () => expect(read('x', 'multipart/form-data').error).not.toBeNull());
  test('a boundary that browsers make is none', () => {
    const boundary = '----WebKitFormBoundaryabc';
    expect(read(`--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--${boundary}--\r\n`, `multipart/form-data; boundary=${boundary}`)).toMatchObject({ multipartFlags: [], error: null });
  });
  test('what other clients than browsers send is read: bare tokens, a quoted boundary, filename* beside and instead of filename', () => {
    const both = read(`\r\n${part("Content-Disposition: form-data; name=file; filename=\"=?utf-8?B?eA==?=\"; filename*=utf-8''n%C3%A4.php", 'x')}--XX--\r\n\r\n`, 'multipart/form-data; boundary="XX"');
    expect(both).toMatchObject({ files: [{ field: 'file', fileName: '=?utf-8?B?eA==?=', size: 1 }, { field: 'file', fileName: 'n\xc3\xa4.php', size: 1 }], multipartFlags: ['BOUNDARY_QUOTED'], error: null });
    expect(read(`${part("Content-Disposition: form-data; name=\"f\"; filename*=UTF-8'en'a+b%20c", 'x')}--XX--`)).toMatchObject({ files: [{ fileName: 'a+b c' }], multipartFlags: [], error: null });
  });
  test('a cut body is no error', () => expect(read(`${field('a', '1')}${part('Content-Disposition: form-data; name="b"', 'par')}`.slice(0, -4), type, false)).toMatchObject({ error: null, multipartFlags: [] }));
  test('more than 64 parts are excess', () => expect(read(`${field('a', '1').repeat(65)}--XX--`)).toMatchObject({ excess: ['parts'], error: null }));
});

test('hostile bodies are read in linear time', () => {
  const bodies = ['<!DOCTYPE ' + '"'.repeat(120_001), `<a ${' '.repeat(120_000)}x`, '<a b="'.repeat(20_000), '{"a":'.repeat(25_000), '\\"'.repeat(60_000), `--X\r\nA: ${' '.repeat(120_000)}x\r\n\r\n`, '--X\r\n'.repeat(25_000), `--X\r\nContent-Disposition: form-data;${' ;'.repeat(60_000)}\r\n\r\n`, '&'.repeat(120_000), '%'.repeat(120_000)];
  for (const body of bodies) {
    const before = process.cpuUsage();
    for (const processor of ['URLENCODED', 'JSON', 'XML', 'MULTIPART'] as const) parseBody(body, processor, 'multipart/form-data; boundary=X', true);
    expect({ body: body.slice(0, 20), slow: process.cpuUsage(before).user > 3_000_000 }).toEqual({ body: body.slice(0, 20), slow: false });
  }
});

describe('content encodings', () => {
  const text = '{"a":"<script>"}';
  test.each([['gzip', gzipSync(text)], ['deflate', deflateSync(text)], ['deflate', deflateRawSync(text)], ['br', brotliCompressSync(text)], ['gzip, br', brotliCompressSync(gzipSync(text))], ['identity', Buffer.from(text)]])(
    '%s is undone', (encoding, body) => expect(plainBody(body, encoding)).toEqual({ text, excess: [], error: null }));
  const zeros = Buffer.alloc(8_000_000);
  test.each([['gzip', gzipSync(zeros)], ['br', brotliCompressSync(zeros, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })]])('a bomb of %s is excess and stays small', (encoding, bomb) => {
    const { text: kept, excess } = plainBody(bomb, encoding);
    expect(excess).toEqual(['decoding']);
    expect(kept.length).toBeLessThan(5_000_000);
  });
  test('what is not compressed is an error', () => expect(plainBody(Buffer.from('plain'), 'gzip').error).not.toBeNull());
  test('an unknown encoding is an error', () => expect(plainBody(Buffer.from('x'), 'zstd').error).not.toBeNull());
});

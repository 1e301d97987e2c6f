import fc from 'fast-check';
import { formatMailbox, parseMailbox } from '../../src/mail/rules/addresses';
import { estimatedMimeBytes, recipientsOf, sendBody, sizeFault } from '../../src/mail/schemas/send';

const body = { from: 'Acme <a@acme.com>', to: ['x@y.org'], subject: 'Hello' };
const faultsOf = (change: object) => [...new Set(sendBody.safeParse({ ...body, ...change }).error?.issues.map(({ path }) => path.join('.')) ?? [])];

test.each([
  ['a@b.co', { name: '', address: 'a@b.co' }], [' Ann  <Ann.B+c@EXAMPLE.com> ', { name: 'Ann', address: 'Ann.B+c@example.com' }], ['<a@b.co>', { name: '', address: 'a@b.co' }],
  ['"Acme, Inc. \\"x\\"" <a@b.co>', { name: 'Acme, Inc. "x"', address: 'a@b.co' }], ['Größe <a@bücher.example>', { name: 'Größe', address: 'a@xn--bcher-kva.example' }],
  ['Acme, Inc <a@b.co>', { name: 'Acme, Inc', address: 'a@b.co' }], ['=?utf-8?B?WA==?= <a@b.co>', { name: '=?utf-8?B?WA==?=', address: 'a@b.co' }],
])('%j is taken', (given, value) => {
  expect(parseMailbox(given)).toEqual({ value });
});

test.each([
  '', ' ', 'a', '@b.co', 'a@', 'a@b', 'a@b.co.', 'a b@c.co', 'a..b@c.co', '.a@c.co', 'a.@c.co', '"a b"@c.co', 'a@[127.0.0.1]', 'a@127.0.0.1', 'a(x)@b.co', '(x) a@b.co', 'a@b.co (x)',
  'Team: a@b.co, c@d.co;', 'Team: <a@b.co>;', 'a@b.co, c@d.co', '<a@b.co> x', '<<a@b.co>>', 'ä@b.co', 'a@b_c.co', 'a@-b.co', 'a@b..co', 'Ann (CEO) <a@b.co>', '"Ann <a@b.co>', 'Ann <a@b.co',
  `${'a'.repeat(65)}@b.co`, `a@${'b'.repeat(64)}.co`, `a@${'b.'.repeat(127)}co`, `${'n'.repeat(129)} <a@b.co>`, `${'ü'.repeat(128)} <${'a'.repeat(60)}@b.co>`, 'a\u0000@b.co', 'a@b.co\n', 'A\rB <a@b.co>',
  'A\u0085B <a@b.co>', 'A\u2028B <a@b.co>', 'A\u2029B <a@b.co>', 'A\tB <a@b.co>', '\ud800 <a@b.co>', 'a@b。', 'a@b.co>', 'a@@b.co', 'a@b@c.co',
])('%j is refused', (given) => {
  expect(faultsOf({ from: given })).toEqual(['from']);
});

test('a mailbox written out reads back as itself', () => {
  const name = fc.string({ unit: 'grapheme', maxLength: 40 }).map((text) => text.replace(/[\p{Cc}\u2028\u2029]/gu, '').toWellFormed().trim());
  fc.assert(fc.property(name, (given) => {
    const value = { name: given, address: 'a@b.co' };
    expect(parseMailbox(formatMailbox(value))).toEqual({ value });
  }));
});

const controls = [...Array(32).keys(), ...Array.from({ length: 33 }, (_, i) => 127 + i), 0x2028, 0x2029].map((code) => String.fromCharCode(code));

test.each(['from', 'replyTo', 'subject'])('no control reaches the header field of %s', (field) => {
  for (const control of controls) expect(faultsOf({ [field]: field === 'subject' ? `Hi${control}Bcc: x@y.org` : `Hi${control}Bcc: z <x@y.org>` })).toEqual([field]);
});

test.each(['to', 'cc', 'bcc'])('no control reaches the header field of %s', (field) => {
  for (const control of controls) expect(faultsOf({ [field]: [`A${control}B <x@y.org>`] })).toEqual([`${field}.0`]);
});

test('counts and forms are bounded as the contract says, and every fault is named at once', () => {
  const many = (n: number) => Array.from({ length: n }, (_, i) => `r${i}@y.org`);
  expect(faultsOf({ to: many(50), cc: many(25), bcc: many(25) })).toEqual([]);
  expect(faultsOf({ to: many(51), cc: many(26), bcc: many(26) })).toEqual(['to', 'cc', 'bcc']);
  expect(faultsOf({ to: [] })).toEqual(['to']);
  for (const field of ['cc', 'bcc', 'replyTo', 'text', 'html', 'metadata', 'from', 'to', 'subject']) expect(faultsOf({ [field]: null })).toEqual([field]);
  expect(faultsOf({ subject: ' ', from: 'x', to: ['y'] }).toSorted()).toEqual(['from', 'subject', 'to.0']);
  expect(faultsOf({ subject: '😀'.repeat(180) })).toEqual([]);
  expect(faultsOf({ subject: '😀'.repeat(181) })).toEqual(['subject']);
});

test('an address is kept once, its first kind wins in the order to, cc, bcc', () => {
  const parsed = sendBody.parse({ ...body, to: ['A <X@y.org>', 'x@Y.ORG'], cc: ['x@y.org', 'c@y.org'], bcc: ['C@y.org', 'b@y.org'] });
  expect(recipientsOf(parsed).map(({ kind, address, name }) => [kind, address, name])).toEqual([['to', 'X@y.org', 'A'], ['cc', 'c@y.org', ''], ['bcc', 'b@y.org', '']]);
});

test.each([
  ['an array', []], ['a string', 'x'], ['51 keys', Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, 1]))], ['an empty key', { '': 1 }], ['a long key', { ['k'.repeat(65)]: 1 }],
  ['six levels', { a: { b: { c: { d: { e: {} } } } } }], ['17 KiB', { a: 'x'.repeat(16_384) }], ['__proto__', JSON.parse('{"__proto__":{}}')], ['constructor', { a: { constructor: 1 } }],
  ['prototype', { a: [{ prototype: 1 }] }], ['an infinite number', { a: JSON.parse('1e999') }],
])('metadata with %s is refused', (_, metadata) => {
  expect(faultsOf({ metadata })).toEqual(['metadata']);
});

test('metadata is returned unchanged', () => {
  const metadata = { orderId: '42', 'a b': [1, { c: null }], d: { e: { f: { g: true } } } };
  expect(sendBody.parse({ ...body, metadata }).metadata).toBe(metadata);
});

test('sizes are judged by part and as a whole', () => {
  const fault = (change: object) => {
    const parsed = sendBody.parse({ ...body, ...change });
    return sizeFault(parsed, estimatedMimeBytes(parsed, recipientsOf(parsed)))?.part ?? null;
  };
  const mebibyte = 1024 * 1024;
  expect(fault({ text: 'x'.repeat(60) })).toBeNull();
  expect(fault({ text: 'x\n'.repeat(2.5 * mebibyte) })).toBeNull();
  expect(fault({ text: 'x'.repeat(5 * mebibyte + 1) })).toBe('text');
  expect(fault({ html: 'x'.repeat(5 * mebibyte + 1) })).toBe('html');
  expect(fault({ text: 'ü'.repeat(2.5 * mebibyte), html: 'ü'.repeat(2.5 * mebibyte) })).toBe('message');
});

import { canonicalDomain, registrableDomain } from '../../src/dns/rules/domains';

const rules = { allowTestTlds: false, platformSuffixes: ['ns.holdfast.net', 'edge.holdfast.net'] };
const domain = (text: string, more = {}): string | undefined => canonicalDomain(text, { ...rules, ...more }).value?.domain;

test.each([
  ['example.com', 'example.com'], ['  Example.COM. ', 'example.com'], ['bücher.de', 'xn--bcher-kva.de'], ['XN--BCHER-KVA.de', 'xn--bcher-kva.de'],
  ['straße.de', 'xn--strae-oqa.de'], ['例え。jp', 'xn--r8jz45g.jp'], ['a-b.example.com', 'a-b.example.com'], ['1.example.com', '1.example.com'],
  ['foo.github.io', 'foo.github.io'], [`${'a'.repeat(63)}.com`, `${'a'.repeat(63)}.com`],
])('%j is %s', (text, expected) => {
  expect(domain(text)).toBe(expected);
});

test.each([
  [''], ['com'], ['co.uk'], ['github.io'], ['example..com'], ['.example.com'], ['-a.com'], ['a-.com'], ['ab--cd.com'], ['xn--.com'], ['xn--a.com'], ['xn--abc.com'],
  ['a_b.com'], ['*.example.com'], ['192.0.2.1'], ['example.123'], ['::1'], ['http://example.com'], ['example.com:80'], ['exa mple.com'], ['example.com..'],
  [`${'a'.repeat(64)}.com`], [`${'a.'.repeat(126)}com`], ['a.localhost'], ['printer.local'], ['x.invalid'], ['x.onion'], ['x.alt'], ['x.internal'], ['10.in-addr.arpa'],
  ['a.home.arpa'], ['a.test'], ['a.example'], ['ns.holdfast.net'], ['x.edge.holdfast.net'], ['\u0000.com'],
])('%j is refused', (text) => {
  expect(canonicalDomain(text, rules).fault).toEqual(expect.any(String));
});

test('names under test are taken where they are allowed', () => {
  expect(domain('shop.test', { allowTestTlds: true })).toBe('shop.test');
  expect(domain('a.example', { allowTestTlds: true })).toBe('a.example');
  expect(domain('test', { allowTestTlds: true })).toBeUndefined();
});

test('a label of mixed scripts is told', () => {
  expect(canonicalDomain('p\u0430ypal.com', rules).value?.warnings.map(({ code }) => code)).toEqual(['mixed_script']);
  expect(canonicalDomain('пример.com', rules).value?.warnings).toEqual([]);
  expect(canonicalDomain('東京tower.jp', rules).value?.warnings).toEqual([]);
});

test('the registrable domain is below the public suffix', () => {
  expect(['a.b.example.co.uk', 'x.foo.github.io', 'demo.test', 'a.demo.test'].map(registrableDomain)).toEqual(['example.co.uk', 'foo.github.io', 'demo.test', 'demo.test']);
});

import fc from 'fast-check';
import { toASCII } from 'tr46';
import { uts46 } from '../../src/dns/rules/domains';
import { formatIpv6, parseIpv6 } from '../../src/dns/rules/addresses';
import { isGlobalUnicast } from '../../src/dns/rules/global-addresses';
import { canonicalRecordName } from '../../src/dns/rules/names';
import { canonicalOrigin, noOrigin } from '../../src/dns/rules/origins';
import type { RecordType } from '../../src/dns/rules/rrset';
import { quoteStrings } from '../../src/dns/rules/text-strings';
import { canonicalRecord, canonicalValue } from '../../src/dns/rules/values';

const at = { domain: 'example.com', name: 'www' };
const value = (type: RecordType, text: string): string | undefined => canonicalValue(type, text, at).value;

describe('record names', () => {
  test.each([
    ['@', '@'], ['', '@'], ['www', 'www'], ['WWW', 'www'], ['www.example.com', 'www'], ['www.example.com.', 'www'], ['example.com', '@'], ['Example.Com.', '@'],
    ['a.b', 'a.b'], ['_dmarc', '_dmarc'], ['_sip._tcp', '_sip._tcp'], ['*', '*'], ['*.a', '*.a'], ['bücher', 'xn--bcher-kva'], ['notexample.com', 'notexample.com'], ['1', '1'],
  ])('%j is %s', (text, expected) => expect(canonicalRecordName(text, 'example.com').value).toBe(expected));

  test.each([
    ['www.example.org.'], ['com.'], ['a..b'], ['-a'], ['a-'], ['a.*'], ['a*'], ['*a'], ['**'], ['*.*'], ['a b'], ['a\\.b'], ['a/b'], ['a@b'], ['.'], ['a.b.'],
    ['x'.repeat(64)], [`${'a.'.repeat(121)}a`],
  ])('%j is refused', (text) => expect(canonicalRecordName(text, 'example.com').fault).toEqual(expect.any(String)));

  test('a canonical name is its own canonical form', () => {
    fc.assert(fc.property(fc.string({ maxLength: 40 }), (text) => {
      const name = canonicalRecordName(text, 'example.com').value;
      if (name !== undefined) expect(canonicalRecordName(name, 'example.com').value).toBe(name);
    }));
  });
});

describe('addresses', () => {
  test.each([['192.0.2.1', '192.0.2.1'], ['1.1.1.1', '1.1.1.1'], ['10.0.0.1', '10.0.0.1'], ['240.0.0.1', '240.0.0.1']])('A %s', (text, expected) => expect(value('A', text)).toBe(expected));
  test.each([['0.1.2.3'], ['224.0.0.1'], ['239.255.255.255'], ['255.255.255.255'], ['192.0.2.01'], ['192.0.2'], ['192.0.2.256'], ['::1'], [' 192.0.2.1'], ['0x7f.1.1.1'], ['www.example.com']])('A %j is refused', (text) => expect(value('A', text)).toBeUndefined());
  test.each([
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'], ['2001:db8:0:1:0:0:0:1', '2001:db8:0:1::1'], ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'], ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['::ffff:192.0.2.1', '::ffff:c000:201'], ['fd00::1', 'fd00::1'], ['::1', '::1'], ['64:ff9b::1.2.3.4', '64:ff9b::102:304'],
  ])('AAAA %s is %s', (text, expected) => expect(value('AAAA', text)).toBe(expected));
  test.each([['::'], ['fe80::1'], ['febf::1'], ['ff02::1'], ['fe80::1%eth0'], ['2001:db8::1%1'], ['[2001:db8::1]'], ['192.0.2.1'], ['2001:db8::g']])('AAAA %j is refused', (text) => expect(value('AAAA', text)).toBeUndefined());

  test('IPv6 text and octets are each other\'s inverse', () => {
    fc.assert(fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (octets) => expect(parseIpv6(formatIpv6(octets))).toEqual(octets)));
    fc.assert(fc.property(fc.ipV6(), (text) => {
      const octets = parseIpv6(text);
      expect(octets && parseIpv6(formatIpv6(octets))).toEqual(octets);
    }));
  });

  test('an IPv4-mapped address is taken only unproxied', () => {
    const draft = { type: 'AAAA', name: 'www', value: '::ffff:192.0.2.1', priority: null } as const;
    expect(canonicalRecord({ ...draft, proxied: false }, 'example.com').faults).toBeUndefined();
    expect(canonicalRecord({ ...draft, proxied: true }, 'example.com').faults).toHaveLength(1);
  });

  test.each([['8.8.8.8'], ['2606:4700::1111'], ['64:ff9b::8.8.8.8'], ['2002:808:808::1']])('%s is public', (text) => expect(isGlobalUnicast(text)).toBe(true));
  test.each([
    ['127.0.0.1'], ['10.0.0.1'], ['172.16.0.1'], ['192.168.1.1'], ['169.254.169.254'], ['100.64.0.1'], ['0.0.0.0'], ['224.0.0.1'], ['255.255.255.255'], ['192.0.0.8'], ['192.0.2.1'], ['198.51.100.1'],
    ['203.0.113.1'], ['198.18.0.1'], ['198.19.255.255'], ['192.88.99.1'], ['240.0.0.1'], ['::'], ['::1'], ['::ffff:8.8.8.8'], ['fe80::1'], ['fd00::1'], ['ff02::1'], ['2001:db8::1'], ['3fff::1'], ['100::1'],
    ['64:ff9b::10.0.0.1'], ['64:ff9b:1::8.8.8.8'], ['2002:a00:1::1'], ['2002:7f00:1::1'], ['::8.8.8.8'], ['2001::1'], ['5f00::1'], ['fe80::1%lo'], ['8.8'], ['0x8.8.8.8'], ['example.com'],
  ])('%s is not public', (text) => expect(isGlobalUnicast(text)).toBe(false));
});

describe('host names', () => {
  test.each([['CNAME', 'Target.Example.NET.', 'target.example.net'], ['CNAME', '@', 'example.com'], ['CNAME', '_a.b.example.net', '_a.b.example.net'], ['CNAME', '*.example.net', '*.example.net'], ['NS', 'ns1.Example.net', 'ns1.example.net'], ['MX', 'mail.bücher.de', 'mail.xn--bcher-kva.de'], ['MX', '.', '.']] as const)('%s %s is %s', (type, text, expected) => expect(value(type, text)).toBe(expected));
  test.each([
    ['CNAME', 'www.example.com'], ['CNAME', 'localhost'], ['CNAME', '192.0.2.1'], ['CNAME', 'http://example.net'], ['CNAME', 'example.net:80'], ['CNAME', 'a b.net'], ['CNAME', 'a.*.net'], ['CNAME', ''], ['CNAME', '.'],
    ['NS', 'ns_1.example.net'], ['NS', '*.example.net'], ['NS', '.'], ['MX', 'mail_1.example.net'], ['MX', '10 mail.example.net'], ['MX', 'mail'], ['MX', '2001:db8::1'],
  ] as const)('%s %j is refused', (type, text) => expect(value(type, text)).toBeUndefined());

  test('MX has a priority, 10 unless given; the null MX has 0; other types have none', () => {
    const mx = { type: 'MX', name: '@', value: 'mail.example.net', proxied: false } as const;
    expect(canonicalRecord({ ...mx, priority: null }, 'example.com')).toEqual({ value: 'mail.example.net', priority: 10 });
    expect(canonicalRecord({ ...mx, priority: 65_535 }, 'example.com')).toMatchObject({ priority: 65_535 });
    expect(canonicalRecord({ ...mx, priority: 65_536 }, 'example.com').faults).toMatchObject([{ path: 'priority' }]);
    expect(canonicalRecord({ ...mx, value: '.', priority: 10 }, 'example.com').faults).toMatchObject([{ path: 'priority' }]);
    expect(canonicalRecord({ ...mx, value: '.', priority: 0 }, 'example.com')).toEqual({ value: '.', priority: 0 });
    expect(canonicalRecord({ ...mx, type: 'A', value: '192.0.2.1', priority: 1 }, 'example.com').faults).toMatchObject([{ path: 'priority' }]);
  });

  test('a zone does not delegate its apex or a wildcard, and proxies no other type and no underscore name', () => {
    const faults = (type: RecordType, name: string, text: string, proxied: boolean): unknown => canonicalRecord({ type, name, value: text, priority: null, proxied }, 'example.com').faults?.map(({ path }) => path);
    expect(faults('NS', '@', 'ns1.example.net', false)).toEqual(['name']);
    expect(faults('NS', '*.a', 'ns1.example.net', false)).toEqual(['name']);
    expect(faults('TXT', 'a', 'x', true)).toEqual(['proxied']);
    expect(faults('A', '_a.b', '8.8.8.8', true)).toEqual(['proxied']);
    expect(faults('CNAME', 'a', 'b.example.net', true)).toBeUndefined();
  });
});

describe('TXT', () => {
  test.each([
    ['v=spf1 -all', 'v=spf1 -all'], ['"v=spf1" " -all"', 'v=spf1 -all'], ['"a""b"', 'ab'], ['"say \\"hi\\""', 'say "hi"'], ['"\\195\\169"', 'é'], ['say "hi"', 'say "hi"'], ['"open', '"open'],
    ['', ''], ['""', ''], [' "a" ', 'a'], ['é', 'é'], ['"a" b', '"a" b'],
  ])('%j is %j', (text, expected) => expect(value('TXT', text)).toBe(expected));
  test('at most 4,000 bytes, no U+0000, no broken Unicode', () => {
    expect(value('TXT', 'x'.repeat(4000))).toHaveLength(4000);
    expect([`${'é'.repeat(2000)}x`, 'a\0b', '"\\000"', '\ud800', '"\\255"'].map((text) => value('TXT', text))).toEqual([undefined, undefined, undefined, undefined, undefined]);
  });
  test('what is quoted for a zone file reads back the same', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 600 }).filter((text) => !text.includes('\0') && text.isWellFormed()), (text) => expect(value('TXT', quoteStrings(text))).toBe(text)));
  });
});

describe('CAA', () => {
  test.each([
    ['0 issue ca.example', '0 issue "ca.example"'], ['0 ISSUE "CA.Example"', '0 issue "ca.example"'], ['128 issuewild ";"', '128 issuewild ";"'], ['0 issue ;', '0 issue ";"'],
    ['0 issue "ca.example;account=1"', '0 issue "ca.example; account=1"'], ['0 issue ca.example; account=1; validationmethods=dns-01', '0 issue "ca.example; account=1; validationmethods=dns-01"'],
    ['0 iodef mailto:a@b.example', '0 iodef "mailto:a@b.example"'], ['0 iodef "https://b.example/x"', '0 iodef "https://b.example/x"'], ['0 contactemail "a\\"b"', '0 contactemail "a\\"b"'],
  ])('%j is %j', (text, expected) => expect(value('CAA', text)).toBe(expected));
  test.each([['issue ca.example'], ['256 issue ca.example'], ['0 issue'], ['0 is-sue ca.example'], ['0 issue "ca example"'], ['0 issue ""'], ['0 issue "ca.example; =1"'], ['0 iodef ftp://x'], ['0 iodef a@b'], [`0 tag ${'x'.repeat(256)}`], ['0 issue "ca.example']])('%j is refused', (text) => expect(value('CAA', text)).toBeUndefined());
  test('a canonical value is its own canonical form', () => {
    fc.assert(fc.property(fc.nat(255), fc.stringMatching(/^[a-z0-9]{1,15}$/), fc.string({ minLength: 1, maxLength: 60 }), (flags, tag, text) => {
      const canonical = value('CAA', `${flags} ${tag} "${text}"`);
      if (canonical !== undefined) expect(value('CAA', canonical)).toBe(canonical);
    }));
  });
});

describe('origins', () => {
  test('the protocol is http unless given; a record that is not proxied has no origin', () => {
    expect(canonicalOrigin(noOrigin, true, new Set())).toEqual({ origin: { ...noOrigin, originProtocol: 'http' } });
    expect(canonicalOrigin(noOrigin, false, new Set())).toEqual({ origin: noOrigin });
    expect(canonicalOrigin({ ...noOrigin, originPort: 80, originPath: '/a' }, false, new Set()).faults?.map(({ path }) => path)).toEqual(['originPort', 'originPath']);
  });
  test.each([[0], [22], [25], [53], [465], [587], [65_536], [1.5], [10_080]])('port %d is refused', (originPort) => {
    expect(canonicalOrigin({ ...noOrigin, originPort }, true, new Set([10_080])).faults).toMatchObject([{ path: 'originPort' }]);
  });
  test.each([['a'], ['/..'], ['/a?b'], ['/a#b'], ['/a\n'], [`/${'a'.repeat(512)}`]])('path %j is refused', (originPath) => {
    expect(canonicalOrigin({ ...noOrigin, originPath }, true, new Set()).faults).toMatchObject([{ path: 'originPath' }]);
  });
  test.each([['a b'], ['http://a'], ['a:0'], ['a:70000'], [''], ['a/b'], [`${'a'.repeat(63)}.`.repeat(4)]])('host header %j is refused', (originHostHeader) => {
    expect(canonicalOrigin({ ...noOrigin, originHostHeader }, true, new Set()).faults).toMatchObject([{ path: 'originHostHeader' }]);
  });
  test('good settings are kept', () => {
    const origin = { originProtocol: 'https', originPort: 8443, originPath: '/a/b', originHostHeader: 'internal.example.com:8443' } as const;
    expect(canonicalOrigin(origin, true, new Set())).toEqual({ origin });
  });
});

test('a name in its ASCII form is what UTS #46 makes of it', () => {
  fc.assert(fc.property(fc.string({ unit: fc.constantFrom(...'ab0-_.*x'), maxLength: 12 }), (text) => expect(toASCII(text, uts46)).toBe(text)));
});

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { isStorable } from '../../src/core/fields';
import type { ZoneRecord } from '../../src/dns/rules/rrset';
import { canonicalText } from '../../src/dns/rules/text-strings';
import { canonicalRecord, valueAsGiven } from '../../src/dns/rules/values';
import { writeZoneFile, type ExportedRecord } from '../../src/dns/rules/zone-file';
import { readZoneFile, type ZoneFileContent } from '../../src/dns/rules/zone-file-reader';

const head = { domain: 'example.com', nameservers: ['t-1.ns.host.example', 't-2.ns.host.example'], soaRname: 'hostmaster.host.example', serial: 2026112101 };
const rules = { domain: 'example.com', platformPorts: new Set([3000]) };
const read = (...lines: string[]): ZoneFileContent => readZoneFile(lines.join('\n'), rules);
const brief = ({ records }: ZoneFileContent): string[] => records.map(({ name, ttl, type, priority, value }) => [name, ttl, type, priority, value].filter((part) => part !== null).join(' '));
const hasCheckzone = spawnSync('named-checkzone', ['-v']).status === 0;

const text = fc.oneof(fc.string({ maxLength: 300 }), fc.string({ unit: 'binary', maxLength: 100 }), fc.constant('say "hi" \\ ; (x)'));
const host = fc.constantFrom('a.example.net', '_x.example.org', 'www.example.com', '*.example.net');
const plainHost = fc.constantFrom('mail.example.net', 'ns1.sub.example.com');
const value: fc.Arbitrary<{ type: ZoneRecord['type']; value: string; priority: number | null }> = fc.oneof(
  fc.ipV4().map((address) => ({ type: 'A' as const, value: address, priority: null })),
  fc.ipV6().map((address) => ({ type: 'AAAA' as const, value: address, priority: null })),
  host.map((target) => ({ type: 'CNAME' as const, value: target, priority: null })),
  fc.record({ type: fc.constant('MX' as const), value: plainHost, priority: fc.nat(65_535) }),
  text.map((content) => ({ type: 'TXT' as const, value: content, priority: null })),
  plainHost.map((target) => ({ type: 'NS' as const, value: target, priority: null })),
  fc.constantFrom('0 issue "ca.example"', '0 issue ";"', '128 iodef "mailto:a@b.example"', '0 x "quo\\"te é"').map((content) => ({ type: 'CAA' as const, value: content, priority: null })),
);
const record = fc.record({
  name: fc.constantFrom('@', 'www', 'a.b', '_dmarc', '*', '*.w', 'xn--bcher-kva'), value, ttl: fc.integer({ min: 60, max: 86_400 }), proxied: fc.boolean(),
  originPort: fc.option(fc.constantFrom(80, 8443)), originPath: fc.option(fc.constantFrom('/', '/a b')), originHostHeader: fc.option(fc.constant('in.example.com')), originProtocol: fc.constantFrom('http' as const, 'https' as const),
  comment: fc.option(fc.string({ unit: 'binary', maxLength: 40 }).filter(isStorable)),
}).chain(({ value: content, proxied, ...rest }) => {
  const canonical = canonicalRecord({ ...content, name: rest.name, proxied: false }, 'example.com');
  if (canonical.faults) return fc.constant(null);
  const isProxied = proxied && canonicalRecord({ ...content, name: rest.name, proxied: true }, 'example.com').faults === undefined;
  const origin = isProxied ? {} : { originPort: null, originPath: null, originHostHeader: null, originProtocol: null };
  return fc.constant({ id: '', type: content.type, ...rest, ...canonical, proxied: isProxied, ...origin });
});

/** As in a zone: one ttl per name and type. */
function sharedTtl(records: ExportedRecord[]): ExportedRecord[] {
  return records.map((one) => ({ ...one, ttl: records.find(({ name, type }) => name === one.name && type === one.type)?.ttl ?? one.ttl }));
}

test('what is exported is imported as the same records', () => {
  fc.assert(fc.property(fc.array(record, { maxLength: 20 }), (given) => {
    const records: ExportedRecord[] = sharedTtl(given.flatMap((one) => (one ? [one] : [])));
    const { records: found, skipped } = readZoneFile(writeZoneFile(head, records), rules);
    const comparable = (list: readonly Omit<ExportedRecord, 'id'>[]): string[] => list.map(({ name, type, value: content, priority, ttl, proxied, originProtocol, originPort, originPath, originHostHeader, comment }) =>
      JSON.stringify({ name, type, content, priority, ttl, proxied, originProtocol, originPort, originPath, originHostHeader, comment })).sort();
    expect(comparable(found)).toEqual(comparable(records));
    expect(skipped.map(({ reason }) => reason)).toEqual(head.nameservers.map(() => 'NS of the apex is set by the platform').concat('SOA of the apex is set by the platform').sort((a, b) => (a < b ? 1 : -1)));
  }), { numRuns: 300 });
});

test('directives, inherited names, classes, units, parentheses and comments', () => {
  expect(brief(read(
    '$TTL 1h', '$ORIGIN example.com.', '@ IN SOA ns1 host ( 1 2 ; serial', ' 3 4 5 )', 'www 300 IN A 192.0.2.1', '    IN 600 A 192.0.2.2 ; second', '\tAAAA 2001:DB8::1',
    '$ORIGIN sub.example.com.', 'x CNAME y', '@ MX 5 mail.example.net.', 'long TXT ( "a"', '  "b;c" )', 'bare TXT v=spf1', 'w 1w A 192.0.2.9', 'z 5 A 192.0.2.8', 'z 900 A 192.0.2.7',
  ))).toEqual([
    'www 300 A 192.0.2.1', 'www 300 A 192.0.2.2', 'www 3600 AAAA 2001:db8::1', 'x.sub 3600 CNAME y.sub.example.com', 'sub 3600 MX 5 mail.example.net', 'long.sub 3600 TXT ab;c', 'bare.sub 3600 TXT v=spf1',
    'w.sub 86400 A 192.0.2.9', 'z.sub 60 A 192.0.2.8', 'z.sub 60 A 192.0.2.7',
  ]);
});

test.each([
  ['www IN SRV 1 2 3 a.b.', 'type SRV is not supported'], ['@ NS ns1.example.net.', 'NS of the apex is set by the platform'], ['www.example.org. A 192.0.2.1', 'name must be inside example.com'],
  ['www A 192.0.2.300', /^value must be an IPv4/], ['www CH A 192.0.2.1', 'class CH is not supported'], ['www TXT "open', 'a quote is not closed'], ['www A ( 192.0.2.1', 'a parenthesis is not closed'],
  ['$INCLUDE other.zone', '$INCLUDE is not supported'], [' A 192.0.2.1', 'the first record has no name'], ['www 300', 'a record without a type'], ['www MX mail.example.net.', /priority/], ['w\\.x A 192.0.2.1', /^name must not hold/],
  ['www A 192.0.2.1 ; holdfast {"proxied":true,"originPort":25}', 'originPort the gateway does not connect to port 25'],
])('%j is skipped with its reason and line', (line, reason) => {
  const { records, skipped } = read('; a comment', line);
  expect(records).toEqual([]);
  expect(skipped).toEqual([{ line: 2, reason: typeof reason === 'string' ? reason : expect.stringMatching(reason) }]);
});

test('a stored text is read as itself again, whatever it looks like', () => {
  fc.assert(fc.property(fc.oneof(text, fc.constantFrom('"a" "b"', '"', '""')), (given) => {
    const stored = canonicalText(given);
    if (stored.value !== undefined) expect(canonicalText(valueAsGiven({ type: 'TXT', value: stored.value }))).toEqual(stored);
  }));
});

test('any text at all is read without failing', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (anything) => expect(readZoneFile(anything, rules).records.length).toBeGreaterThanOrEqual(0)));
});

(hasCheckzone ? test : test.skip)('named-checkzone loads what is exported (skipped without it)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'zone-file-'));
  const one = (name: string, type: ZoneRecord['type'], content: string, more: Partial<ExportedRecord> = {}): ExportedRecord => ({ id: '', comment: null, name, type, value: content, ttl: 300, priority: null, proxied: false, originProtocol: null, originPort: null, originPath: null, originHostHeader: null, ...more });
  const records = [
    one('@', 'CNAME', 'a.example.net'), one('@', 'MX', 'mail.example.net', { priority: 10 }), one('@', 'TXT', `v=DKIM1; p=${'é"\\'.repeat(200)}`), one('www', 'A', '192.0.2.1', { proxied: true, originProtocol: 'http' }), one('www', 'AAAA', '2001:db8::1'), one('*.w', 'CNAME', 'www.example.com'),
    one('sub', 'NS', 'ns1.sub.example.com'), one('ns1.sub', 'A', '192.0.2.53'), one('@', 'CAA', '0 issue "ca.example; account=1"'), one('_dmarc', 'TXT', 'v=DMARC1; p=none', { comment: 'two\nlines; "quoted" (open' }), one('none', 'MX', '.', { priority: 0 }),
  ];
  try {
    writeFileSync(join(folder, 'zone'), writeZoneFile(head, records));
    const checked = spawnSync('named-checkzone', ['-i', 'local', 'example.com', join(folder, 'zone')]);
    expect(checked.stdout.toString()).toMatch(/loaded serial 2026112101\nOK/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

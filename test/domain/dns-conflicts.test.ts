import { findConflict, type Conflict } from '../../src/dns/rules/conflicts';
import { isGlobalUnicast } from '../../src/dns/rules/global-addresses';
import { mayBeOrigin } from '../../src/dns/rules/platform';
import { RecordIndex } from '../../src/dns/rules/record-index';
import type { ZoneRecord } from '../../src/dns/rules/rrset';
import { recordWarnings } from '../../src/dns/rules/warnings';

let count = 0;
const record = (name: string, type: ZoneRecord['type'], value: string, more: Partial<ZoneRecord> = {}): ZoneRecord => ({
  id: `rec_${name}_${type}_${++count}`, type, name, value, ttl: 300, priority: type === 'MX' ? 10 : null, proxied: false,
  originProtocol: null, originPort: null, originPath: null, originHostHeader: null, ...more,
});
const write = (before: readonly ZoneRecord[], ...written: ZoneRecord[]): Conflict | null => findConflict(new RecordIndex('example.com', [...before, ...written]), written, { mayBeOrigin: isGlobalUnicast });
const proxied = { proxied: true, originProtocol: 'http' } as const;

function expectConflict(found: Conflict | null, code: string, others: readonly ZoneRecord[]): void {
  expect(found).toMatchObject({ code, conflicts: others.map(({ id }) => id) });
}

test('the same record twice', () => {
  const there = record('www', 'A', '192.0.2.1');
  expectConflict(write([there], record('www', 'A', '192.0.2.1', { ttl: 600 })), 'duplicate_record', [there]);
  expect(write([there], record('www', 'A', '192.0.2.2'))).toBeNull();
  expect(write([record('@', 'MX', 'mail.example.net')], record('@', 'MX', 'mail.example.net', { priority: 20 }))).toBeNull();
});

test('a CNAME stands alone, at the apex beside everything but addresses', () => {
  const cname = record('www', 'CNAME', 'a.example.net');
  expectConflict(write([cname], record('www', 'TXT', 'x')), 'cname_conflict', [cname]);
  expectConflict(write([cname], record('www', 'CNAME', 'b.example.net')), 'cname_conflict', [cname]);
  const apex = record('@', 'CNAME', 'a.example.net');
  expect(write([apex], record('@', 'MX', 'mail.example.net'))).toBeNull();
  expectConflict(write([apex], record('@', 'AAAA', '2001:db8::1')), 'cname_conflict', [apex]);
});

test('CNAMEs in a circle, also through a wildcard', () => {
  const a = record('a', 'CNAME', 'b.example.com');
  expectConflict(write([a], record('b', 'CNAME', 'a.example.com')), 'cname_loop', [a]);
  expect(write([], record('*', 'CNAME', 'x.example.com'))?.code).toBe('cname_loop');
  expect(write([], record('*', 'CNAME', 'x.example.net'))).toBeNull();
});

test('a chain has at most 8 CNAMEs, wherever the new one stands in it', () => {
  const chain = Array.from({ length: 9 }, (_, i) => record(`c${i}`, 'CNAME', `c${i + 1}.example.com`));
  for (const added of chain) expect(write(chain.filter((other) => other !== added), added)?.code).toBe('cname_loop');
  const eight = chain.slice(1);
  for (const added of eight) expect(write(eight.filter((other) => other !== added), added)).toBeNull();
});

test('a cut holds its NS and their addresses only', () => {
  const ns = record('sub', 'NS', 'ns1.sub.example.com');
  expect(write([ns], record('ns1.sub', 'A', '192.0.2.1'))).toBeNull();
  expect(write([ns], record('sub', 'NS', 'ns2.example.net'))).toBeNull();
  expectConflict(write([ns], record('sub', 'TXT', 'x')), 'delegation_conflict', [ns]);
  expectConflict(write([ns], record('a.sub', 'A', '192.0.2.1')), 'delegation_conflict', [ns]);
  expectConflict(write([ns], record('*.sub', 'A', '192.0.2.1')), 'delegation_conflict', [ns]);
  expectConflict(write([ns], record('ns1.sub', 'TXT', 'x')), 'delegation_conflict', [ns]);
  expectConflict(write([ns], record('x.sub', 'NS', 'ns.example.net')), 'delegation_conflict', [ns]);
  const existing = record('a.sub', 'TXT', 'x');
  expectConflict(write([existing], record('sub', 'NS', 'ns.example.net')), 'delegation_conflict', [existing]);
  expect(write([record('sub', 'A', '192.0.2.1')], record('sub', 'NS', 'sub.example.com'))).toBeNull();
});

test('the addresses of a delegation\'s name servers are answered as they are, never by the gateway', () => {
  const ns = record('sub', 'NS', 'ns1.sub.example.com');
  expectConflict(write([ns], record('ns1.sub', 'A', '8.8.8.8', proxied)), 'delegation_conflict', [ns]);
  const hidden = record('ns1.sub', 'A', '8.8.8.8', proxied);
  expectConflict(write([hidden], record('sub', 'NS', 'ns1.sub.example.com')), 'delegation_conflict', [hidden]);
  expect(write([record('sub', 'NS', 'ns1.example.com')], record('ns1', 'A', '8.8.8.8', proxied))).toBeNull();
});

test('of several faults the first in the contract\'s order is told, whichever record has it', () => {
  const cname = record('www', 'CNAME', 'a.example.net');
  const there = record('a', 'A', '192.0.2.1');
  expectConflict(write([cname, there], record('www', 'TXT', 'x'), record('a', 'A', '192.0.2.1')), 'duplicate_record', [there]);
  expectConflict(write([cname], record('p', 'A', '10.0.0.1', proxied), record('www', 'TXT', 'x')), 'cname_conflict', [cname]);
});

test('the null MX stands alone', () => {
  const mx = record('@', 'MX', 'mail.example.net');
  const none = record('@', 'MX', '.', { priority: 0 });
  expectConflict(write([mx], none), 'null_mx_conflict', [mx]);
  expectConflict(write([none], mx), 'null_mx_conflict', [none]);
  expect(write([mx], record('sub', 'MX', '.', { priority: 0 }))).toBeNull();
});

test('the addresses of a name are one pool', () => {
  const there = record('www', 'A', '8.8.8.8', proxied);
  expectConflict(write([there], record('www', 'AAAA', '2606:4700::1', { proxied: false })), 'mixed_proxy', [there]);
  expectConflict(write([there], record('www', 'A', '8.8.4.4', { ...proxied, originPort: 8080 })), 'mixed_proxy', [there]);
  expect(write([there], record('www', 'A', '8.8.4.4', proxied))).toBeNull();
});

test('origins are public addresses that are not ours, and what the configuration allows besides', () => {
  const platform = { servers: [{ addresses: ['9.9.9.9'], port: 53 }], gatewayAddresses: { ipv4: ['9.9.9.10'], ipv6: ['2606:4700::a'] }, privateOrigins: ['127.0.0.0/8', '::1', '10.1.0.0/16'] };
  const asked = ['8.8.8.8', '9.9.9.9', '9.9.9.10', '2606:4700::a', '2606:4700::1', '10.0.0.1', '10.1.2.3', '127.0.0.1', '::1', '::ffff:808:808', '192.0.2.1', '169.254.169.254'];
  expect(asked.filter((address) => mayBeOrigin(platform, address))).toEqual(['8.8.8.8', '2606:4700::1', '10.1.2.3', '127.0.0.1', '::1']);
});

test('the gateway is not sent to addresses that are not public', () => {
  expectConflict(write([], record('www', 'A', '10.0.0.1', proxied)), 'origin_not_allowed', []);
  expect(write([], record('www', 'A', '10.0.0.1'))).toBeNull();
});

test('a set has at most 100 records and 16 KiB', () => {
  const many = Array.from({ length: 100 }, (_, i) => record('www', 'A', `192.0.2.${i}`));
  expect(write(many.slice(1), many[0] ?? record('www', 'A', '192.0.2.0'))).toBeNull();
  expect(write(many, record('www', 'A', '192.0.2.200'))?.code).toBe('rrset_too_large');
  const long = Array.from({ length: 5 }, (_, i) => record('t', 'TXT', `${i}${'x'.repeat(3999)}`));
  expect(write(long.slice(1), long[0] ?? record('t', 'TXT', ''))?.code).toBe('rrset_too_large');
});

test('what was there before and is not touched is no obstacle', () => {
  const orphan = record('ns1.sub', 'A', '192.0.2.1');
  const ns = record('sub', 'NS', 'ns.example.net');
  expect(write([orphan, ns], record('www', 'A', '192.0.2.1'))).toBeNull();
});

test('warnings tell what is seldom meant', () => {
  const codes = (before: readonly ZoneRecord[], written: ZoneRecord): string[] => recordWarnings(new RecordIndex('example.com', [...before, written]), [written]).map(({ code }) => code);
  expect(codes([], record('www', 'A', '10.0.0.1'))).toEqual(['private_address']);
  expect(codes([], record('a_b', 'A', '8.8.8.8'))).toEqual(['underscore_host']);
  expect(codes([], record('sub', 'NS', 'ns1.sub.example.com'))).toEqual(['missing_glue', 'single_ns']);
  expect(codes([record('sub', 'NS', 'ns2.example.net'), record('ns1.sub', 'A', '8.8.8.8')], record('sub', 'NS', 'ns1.sub.example.com'))).toEqual([]);
  expect(codes([], record('www', 'CNAME', 'nothere.example.com'))).toEqual(['target_unresolved']);
  expect(codes([record('*', 'A', '8.8.8.8')], record('www', 'CNAME', 'nothere.example.com'))).toEqual([]);
});

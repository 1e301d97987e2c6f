import fc from 'fast-check';
import { effectiveRecord, effectiveZone, type ZoneFacts } from '../../src/dns/rules/effective';
import { isSerialAfter, nextSerial } from '../../src/dns/rules/serials';
import type { RRset, ZoneRecord } from '../../src/dns/rules/rrset';

const zone: ZoneFacts = {
  domain: 'example.com', mode: 'full_hosting', status: 'active', serial: 2026112100, nameservers: ['t-1.ns.host.example', 't-2.ns.host.example'], soaRname: 'hostmaster.host.example',
  gatewayAddresses: { ipv4: ['203.0.113.10'], ipv6: [] }, flattened: { ipv4: ['198.51.100.9', '198.51.100.10'], ipv6: ['2001:db8::9'], ttl: 120 },
};
const record = (name: string, type: ZoneRecord['type'], value: string, more: Partial<ZoneRecord> = {}): ZoneRecord => ({
  id: `${name}${type}${value}`, type, name, value, ttl: 600, priority: type === 'MX' ? 10 : null, proxied: false, originProtocol: null, originPort: null, originPath: null, originHostHeader: null, ...more,
});
const sets = (facts: Partial<ZoneFacts>, ...records: ZoneRecord[]): RRset[] => effectiveZone({ ...zone, ...facts }, records).filter(({ type, name }) => type !== 'SOA' && !(type === 'NS' && name === 'example.com'));
const proxied = { proxied: true, originProtocol: 'https' } as const;

test('the apex has SOA and NS of the zone', () => {
  expect(effectiveZone(zone, [])).toEqual([
    { name: 'example.com', type: 'NS', ttl: 3600, values: ['t-1.ns.host.example', 't-2.ns.host.example'] },
    { name: 'example.com', type: 'SOA', ttl: 3600, values: ['t-1.ns.host.example hostmaster.host.example 2026112100 7200 3600 1209600 300'] },
  ]);
});

test('unproxied records stand as they are stored, sorted', () => {
  expect(sets({}, record('www', 'A', '192.0.2.2'), record('www', 'A', '192.0.2.1'), record('@', 'MX', 'mail.example.net'))).toEqual([
    { name: 'example.com', type: 'MX', ttl: 600, values: ['10 mail.example.net'] }, { name: 'www.example.com', type: 'A', ttl: 600, values: ['192.0.2.1', '192.0.2.2'] },
  ]);
});

test('a proxied name of a live zone has the gateway\'s addresses of each family, other types stay', () => {
  expect(sets({}, record('www', 'AAAA', '2001:db8::1', proxied), record('www', 'TXT', 'x'))).toEqual([
    { name: 'www.example.com', type: 'A', ttl: 300, values: ['203.0.113.10'] }, { name: 'www.example.com', type: 'TXT', ttl: 600, values: ['x'] },
  ]);
  expect(sets({ status: 'moved' }, record('*', 'CNAME', 'a.example.net', proxied))).toEqual([{ name: '*.example.com', type: 'A', ttl: 300, values: ['203.0.113.10'] }]);
});

test('a pending zone, and one without gateway addresses, answers proxied names as if they were not', () => {
  const stored = [{ name: 'www.example.com', type: 'A', ttl: 600, values: ['198.51.100.7'] }];
  expect(sets({ status: 'pending' }, record('www', 'A', '198.51.100.7', proxied))).toEqual(stored);
  expect(sets({ gatewayAddresses: { ipv4: [], ipv6: [] } }, record('www', 'A', '198.51.100.7', proxied))).toEqual(stored);
});

test('an apex CNAME is flattened, with the lesser ttl; NODATA while nothing is known', () => {
  const apex = record('@', 'CNAME', 'a.example.net');
  expect(sets({}, apex, record('@', 'TXT', 'x'))).toEqual([
    { name: 'example.com', type: 'A', ttl: 120, values: ['198.51.100.10', '198.51.100.9'] }, { name: 'example.com', type: 'AAAA', ttl: 120, values: ['2001:db8::9'] }, { name: 'example.com', type: 'TXT', ttl: 600, values: ['x'] },
  ]);
  expect(sets({ flattened: null }, apex)).toEqual([]);
  expect(sets({}, record('@', 'CNAME', 'a.example.net', proxied))).toEqual([{ name: 'example.com', type: 'A', ttl: 300, values: ['203.0.113.10'] }]);
});

test('an external zone answers nothing', () => {
  expect(effectiveZone({ ...zone, mode: 'external' }, [record('www', 'A', '192.0.2.1')])).toEqual([]);
});

test('the field effective tells what the RRsets do', () => {
  expect(effectiveRecord(zone, record('www', 'A', '198.51.100.7', proxied), true)).toEqual({ served: true, via: 'gateway', values: ['203.0.113.10'], ttl: 300 });
  expect(effectiveRecord(zone, record('www', 'A', '198.51.100.7'), true)).toEqual({ served: true, via: 'record', values: ['198.51.100.7'], ttl: 600 });
  expect(effectiveRecord(zone, record('@', 'CNAME', 'a.example.net'), true)).toMatchObject({ via: 'flattened', ttl: 120 });
  expect(effectiveRecord(zone, record('www', 'A', '198.51.100.7'), false)).toMatchObject({ served: false, via: 'none', values: [] });
});

test('a serial is at least today\'s, always newer, and wraps', () => {
  const day = new Date('2026-11-21T23:59:59.000Z');
  expect(nextSerial(2026112000, day)).toBe(2026112100);
  expect(nextSerial(2026112100, day)).toBe(2026112101);
  expect(nextSerial(2026120100, day)).toBe(2026120101);
  fc.assert(fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), (old) => expect(isSerialAfter(nextSerial(old, day), old)).toBe(true)));
});

import { holderOf, isServed, type Claim } from '../../src/dns/rules/holder';

const claim = (zoneId: string, status: Claim['status'], more: Partial<Claim> = {}): Claim => ({ zoneId, projectId: `p-${zoneId}`, mode: 'full_hosting', status, claimedElsewhere: false, activatedAt: null, leadsHereUnproven: false, ...more });
const holder = (claims: readonly Claim[], ...everLive: string[]): string | undefined => holderOf(claims, new Set(everLive))?.zoneId;

test('a live claim holds the name before all others', () => {
  expect(holder([claim('a', 'pending'), claim('b', 'degraded'), claim('c', 'moved')])).toBe('b');
});

test('among moved claims the one activated last, never one that lost the name', () => {
  const moved = (id: string, day: number, more: Partial<Claim> = {}): Claim => claim(id, 'moved', { activatedAt: new Date(Date.UTC(2026, 0, day)), ...more });
  expect(holder([moved('a', 1), moved('b', 2), claim('c', 'pending')])).toBe('b');
  expect(holder([moved('a', 1), moved('b', 2, { claimedElsewhere: true })])).toBe('a');
  expect(holder([moved('b', 2, { claimedElsewhere: true })])).toBeUndefined();
});

test('a pending claim holds the name only alone, and only where nobody else was live and no foreign delegation leads here', () => {
  expect(holder([claim('a', 'pending')])).toBe('a');
  expect(holder([claim('a', 'pending')], 'p-a')).toBe('a');
  expect(holder([claim('a', 'pending')], 'p-other')).toBeUndefined();
  expect(holder([claim('a', 'pending'), claim('b', 'pending')])).toBeUndefined();
  expect(holder([claim('a', 'pending'), claim('b', 'pending', { mode: 'external' })])).toBe('a');
  expect(holder([claim('a', 'pending', { leadsHereUnproven: true })])).toBeUndefined();
  expect(holder([claim('a', 'pending', { mode: 'external' })])).toBeUndefined();
  expect(holder([])).toBeUndefined();
});

test('below a live zone a holder is served only when that zone delegates to it', () => {
  const zone = { mode: 'full_hosting', domain: 'a.example.com', nameservers: ['t-1.ns.host.example', 't-2.ns.host.example'] } as const;
  expect(isServed(zone, null)).toBe(true);
  expect(isServed(zone, { domain: 'example.com', delegatedTo: [] })).toBe(false);
  expect(isServed(zone, { domain: 'example.com', delegatedTo: ['ns.other.net'] })).toBe(false);
  expect(isServed(zone, { domain: 'example.com', delegatedTo: ['t-2.ns.host.example'] })).toBe(true);
  expect(isServed({ ...zone, mode: 'external' }, null)).toBe(false);
});

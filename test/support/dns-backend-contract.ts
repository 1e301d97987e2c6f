import { newId, type Id } from '../../src/core/ids';
import type { DnsBackend, ZoneChangeSet } from '../../src/dns/ports';
import type { FoundRRset } from '../../src/dns/rules/drift';
import { fullZone, rrsets } from './dns-feed';

/** A backend under test. `prepare`: what has to be true before it is told of a change, for one that follows the database. */
export type BackendUnderTest = { backend: DnsBackend; prepare?: (changes: ZoneChangeSet, whole: readonly string[]) => Promise<void> };

let domains = 0;

/** What every DnsBackend does (contract dns.md §6.1). `world` exists from beforeAll on. */
export function backendContract(world: () => BackendUnderTest): void {
  const tell = async (changes: ZoneChangeSet, whole: readonly string[] = []) => {
    await world().prepare?.(changes, whole);
    return world().backend.applyChangeSet(changes);
  };
  const zone = (lines: readonly string[], version = 1, zoneId: Id<'zone'> = newId('zone'), domain = `contract-${++domains}.test`) => ({ ...fullZone(domain, lines, { version }), zoneId });
  const diff = (of: ZoneChangeSet, version: number, replace: readonly string[], remove: ZoneChangeSet['remove'] = []): ZoneChangeSet => {
    const { replace: [soa] } = fullZone(of.domain, [], { version });
    return { ...of, kind: 'diff', fromVersion: version - 1, version, serial: of.serial + version - of.version, replace: [...rrsets(of.domain, replace), ...(soa ? [soa] : [])], remove };
  };
  const held = async (domain: string): Promise<FoundRRset[][] | null> => {
    const zones = await world().backend.readZone(domain);
    return zones && zones.map((served) => served.rrsets.filter(({ type, name }) => type !== 'SOA' && !(type === 'NS' && name === domain)));
  };
  const expectHeld = async (domain: string, lines: readonly string[]) => {
    const sorted = (sets: readonly FoundRRset[]) => sets.map((set) => ({ ...set, values: [...set.values].sort() })).sort((a, b) => (a.name + a.type < b.name + b.type ? -1 : 1));
    const found = await held(domain);
    expect(found?.map(sorted)).toEqual(found?.map(() => sorted(rrsets(domain, lines))));
    expect(found?.length).toBeGreaterThan(0);
  };
  const everyType = [
    'www A 300 192.0.2.1', 'www A 300 192.0.2.2', 'www AAAA 600 2001:db8::1', '@ MX 300 10 mail.example.net', '@ MX 300 20 mail2.example.net', 'null MX 300 0 .', '*.wild CNAME 300 target.example.net',
    'alias CNAME 60 _under.example.net', 'sub NS 86400 ns1.example.net', '@ TXT 300 v=spf1 -all', `long TXT 300 ${'x'.repeat(600)}`, 'odd TXT 300 a "quoted" \\ back; grün 🦊', 'odd TXT 300 ',
    '@ CAA 300 0 issue "ca.example"', '@ CAA 300 128 issuewild ";"', '_srv._tcp.deep.deeper TXT 300 under', 'mapped AAAA 300 ::ffff:c000:201',
  ];

  test('a full change set is what every server answers, for every type and awkward value', async () => {
    const changes = zone(everyType);
    expect(await tell(changes, everyType)).toMatchObject({ appliedVersion: 1, servers: expect.arrayContaining([expect.objectContaining({ version: 1, inSync: true })]) });
    await expectHeld(changes.domain, everyType);
  });

  test('a step replaces and removes what it names and leaves the rest; twice is once', async () => {
    const first = zone(['www A 300 192.0.2.1', 'old A 300 192.0.2.9', 'stay TXT 300 here']);
    await tell(first, ['www A 300 192.0.2.1', 'old A 300 192.0.2.9', 'stay TXT 300 here']);
    const after = ['www A 60 192.0.2.2', 'www A 60 192.0.2.3', 'new TXT 300 there', 'stay TXT 300 here'];
    const step = diff(first, 2, ['www A 60 192.0.2.2', 'www A 60 192.0.2.3', 'new TXT 300 there'], [{ name: `old.${first.domain}`, type: 'A' }]);
    for (let i = 0; i < 2; i++) {
      expect((await tell(step, after)).appliedVersion).toBe(2);
      await expectHeld(first.domain, after);
    }
  });

  test('a name changes hands between a CNAME and others, whatever else a step would remove there', async () => {
    const states = [['www CNAME 300 a.example.net', 'stay TXT 300 here'], ['www A 300 192.0.2.1', 'www TXT 300 x', 'stay TXT 300 here'], ['www CNAME 300 b.example.net', 'stay TXT 300 here'], ['stay TXT 300 here']];
    const first = zone(states[0] ?? []);
    await tell(first, states[0]);
    for (const [i, lines] of states.entries()) {
      if (i === 0) continue;
      const there = new Set(rrsets(first.domain, lines).map(({ name, type }) => `${name} ${type}`));
      const gone = ['stay', 'www'].flatMap((label) => (['A', 'AAAA', 'CNAME', 'MX', 'TXT', 'NS', 'CAA'] as const).map((type) => ({ name: `${label}.${first.domain}`, type })))
        .filter(({ name, type }) => !there.has(`${name} ${type}`));
      await tell(diff(first, i + 1, lines, gone), lines);
      await expectHeld(first.domain, lines);
    }
  });

  test('an older version changes nothing', async () => {
    const older = zone(['www A 300 192.0.2.1']);
    const newer = zone(['www A 300 192.0.2.2'], 3, older.zoneId, older.domain);
    await tell(newer, ['www A 300 192.0.2.2']);
    expect((await world().backend.applyChangeSet(older)).servers).not.toEqual([]);
    await expectHeld(older.domain, ['www A 300 192.0.2.2']);
  });

  test('a full change set of a zone that is there makes it equal: what nobody wanted is gone', async () => {
    const first = zone(['www A 300 192.0.2.1', 'a TXT 300 1', 'b TXT 300 2']);
    await tell(first, ['www A 300 192.0.2.1', 'a TXT 300 1', 'b TXT 300 2']);
    const wanted = ['www A 300 192.0.2.1', 'b TXT 900 2', 'c MX 300 5 mx.example.net'];
    const second = zone(wanted, 2, first.zoneId, first.domain);
    for (let i = 0; i < 2; i++) expect((await tell(second, wanted)).appliedVersion).toBe(2);
    await expectHeld(first.domain, wanted);
  });

  test('removed is served nowhere, twice as well, and what was never there is removed as easily', async () => {
    const first = zone(['www A 300 192.0.2.1']);
    await tell(first, ['www A 300 192.0.2.1']);
    const removal: ZoneChangeSet = { ...first, kind: 'remove', version: 2, replace: [], remove: [] };
    for (let i = 0; i < 2; i++) expect((await tell(removal)).appliedVersion).toBe(2);
    expect(await held(first.domain)).toBeNull();
    expect(await held('never-there.test')).toBeNull();
  });

  test('it says that it is well', async () => {
    expect(await world().backend.health()).toMatchObject({ ok: true, detail: expect.any(String) });
  });
}

/** What is told to a backend that does not see the database: only push backends can be told wrong things. */
export function pushContract(world: () => BackendUnderTest): void {
  test('a step from a version that is not there changes nothing and says what is', async () => {
    const { backend } = world();
    const first = { ...fullZone(`push-${++domains}.test`, ['www A 300 192.0.2.1']), zoneId: newId('zone') };
    await backend.applyChangeSet(first);
    const gap: ZoneChangeSet = { ...first, kind: 'diff', fromVersion: 4, version: 5, replace: rrsets(first.domain, ['www A 300 192.0.2.5']), remove: [] };
    expect((await backend.applyChangeSet(gap)).appliedVersion).toBe(1);
    expect((await backend.applyChangeSet({ ...gap, domain: 'not-there.test' })).appliedVersion).toBe(0);
    expect((await backend.readZone(first.domain))?.[0]?.rrsets).toContainEqual({ name: `www.${first.domain}`, type: 'A', ttl: 300, values: ['192.0.2.1'] });
  });

  test('another claim takes the name over, and the end of the first one does not touch it', async () => {
    const { backend } = world();
    const mine = { ...fullZone(`push-${++domains}.test`, ['www A 300 192.0.2.1'], { version: 7 }), zoneId: newId('zone') };
    const theirs = { ...fullZone(mine.domain, ['www A 300 192.0.2.2']), zoneId: newId('zone') };
    await backend.applyChangeSet(mine);
    expect((await backend.applyChangeSet(theirs)).appliedVersion).toBe(1);
    expect((await backend.applyChangeSet({ ...mine, kind: 'remove', version: 8, replace: [], remove: [] })).appliedVersion).toBe(8);
    expect((await backend.readZone(mine.domain))?.[0]?.rrsets).toContainEqual({ name: `www.${mine.domain}`, type: 'A', ttl: 300, values: ['192.0.2.2'] });
  });

  test('what somebody else changed there is made right by the same version in full', async () => {
    const { backend } = world();
    const wanted = { ...fullZone(`push-${++domains}.test`, ['www A 300 192.0.2.1']), zoneId: newId('zone') };
    await backend.applyChangeSet(wanted);
    await backend.applyChangeSet({ ...wanted, kind: 'diff', fromVersion: 1, version: 2, replace: rrsets(wanted.domain, ['www A 300 203.0.113.66', 'evil A 300 203.0.113.66']), remove: [] });
    await backend.applyChangeSet({ ...wanted, version: 2 });
    expect((await backend.readZone(wanted.domain))?.[0]?.rrsets.filter(({ type }) => type === 'A')).toEqual([{ name: `www.${wanted.domain}`, type: 'A', ttl: 300, values: ['192.0.2.1'] }]);
  });
}

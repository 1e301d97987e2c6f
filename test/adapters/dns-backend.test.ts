import { MemoryBackend } from '../../src/adapters/dns-backend/memory';
import { PowerdnsBackend } from '../../src/adapters/dns-backend/powerdns';
import { AppError } from '../../src/core/errors';
import { ask } from '../support/dns-client';
import { backendContract, pushContract } from '../support/dns-backend-contract';
import { fullZone } from '../support/dns-feed';
import { powerdnsMissing, TestPowerdns } from '../support/powerdns';

describe('memory', () => {
  const backend = new MemoryBackend();
  backendContract(() => ({ backend }));
  pushContract(() => ({ backend }));
});

const withPowerdns = powerdnsMissing === null ? describe : describe.skip;
withPowerdns(`powerdns${powerdnsMissing === null ? '' : ` (skipped: ${powerdnsMissing})`}`, () => {
  let server: TestPowerdns | undefined;
  const running = (): TestPowerdns => {
    if (!server) throw new Error('It runs from beforeAll on.');
    return server;
  };
  const backendOf = (more: Partial<ConstructorParameters<typeof PowerdnsBackend>[0]> = {}) => new PowerdnsBackend({ url: running().url, apiKey: running().apiKey, serverId: 'localhost', timeoutMs: 5_000, ...more });
  beforeAll(async () => {
    server = await TestPowerdns.start();
  });
  afterAll(() => server?.close());
  backendContract(() => ({ backend: backendOf() }));
  pushContract(() => ({ backend: backendOf() }));

  test('the zone is Native, its serial goes up with each change, and it is answered over DNS', async () => {
    const zone = { ...fullZone('answered.test', ['www A 300 192.0.2.1', 'www TXT 300 grün']), zoneId: 'zone_a' as const };
    await backendOf().applyChangeSet(zone);
    const read = async () => (await running().api('GET', '/zones/answered.test.')).json() as Promise<{ kind: string; soa_edit_api: string; serial: number }>;
    const before = await read();
    expect(before).toMatchObject({ kind: 'Native', soa_edit_api: 'INCREASE' });
    await backendOf().applyChangeSet({ ...zone, kind: 'diff', fromVersion: 1, version: 2, replace: [{ name: 'www.answered.test', type: 'A', ttl: 60, values: ['192.0.2.7'] }], remove: [] });
    expect((await read()).serial).toBeGreaterThan(before.serial);
    expect((await ask(running(), 'www.answered.test', 'A')).answers).toMatchObject([{ ttl: 60, data: '192.0.2.7' }]);
  });

  test('a type nobody writes here is found and taken away; what is disabled counts as absent', async () => {
    const zone = { ...fullZone('foreign.test', ['www A 300 192.0.2.1', 'off A 300 192.0.2.3']), zoneId: 'zone_b' as const };
    await backendOf().applyChangeSet(zone);
    await running().api('PATCH', '/zones/foreign.test.', { rrsets: [
      { name: '_sip._tcp.foreign.test.', type: 'SRV', ttl: 60, changetype: 'REPLACE', records: [{ content: '0 5 5060 sip.example.net.', disabled: false }] },
      { name: 'off.foreign.test.', type: 'A', ttl: 300, changetype: 'REPLACE', records: [{ content: '192.0.2.3', disabled: true }] },
    ] });
    const types = async () => (await backendOf().readZone('foreign.test'))?.[0]?.rrsets.map(({ name, type }) => `${name} ${type}`).filter((line) => !/(?:SOA|NS)$/.test(line));
    expect(await types()).toEqual(['_sip._tcp.foreign.test SRV', 'www.foreign.test A']);
    await backendOf().applyChangeSet(zone);
    expect(await types()).toEqual(['off.foreign.test A', 'www.foreign.test A']);
  });

  test('a refusal is an AppError; no answer, and one of 5xx, may be tried again', async () => {
    const zone = { ...fullZone('refused.test', []), zoneId: 'zone_c' as const };
    await expect(backendOf({ apiKey: 'wrong' }).applyChangeSet(zone)).rejects.toBeInstanceOf(AppError);
    await expect(backendOf({ url: 'http://127.0.0.1:1' }).applyChangeSet(zone)).rejects.not.toBeInstanceOf(AppError);
    await expect(backendOf({ timeoutMs: 1 }).applyChangeSet(zone)).rejects.not.toBeInstanceOf(AppError);
    expect(await backendOf({ url: 'http://127.0.0.1:1' }).health()).toMatchObject({ ok: false });
  });
});

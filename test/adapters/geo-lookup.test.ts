import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openGeoLookup } from '../../src/adapters/geo-lookup/choice';
import { openMmdb } from '../../src/adapters/geo-lookup/mmdb';
import { silent } from '../support/accepted-work';
import { mmdbFile } from '../support/mmdb-file';
import { until } from '../support/until';

const strange = ['198.51.100.1', '2001:db8::1', '::ffff:198.51.100.1', 'no address', ''];

test('without files nothing is known of anybody', async () => {
  const geo = await openGeoLookup({}, silent);
  expect(geo.available).toEqual({ country: false, asn: false });
  for (const ip of ['192.0.2.1', ...strange]) expect(geo.lookup(ip)).toEqual({ country: null, asn: null });
});

describe('with the operator\'s files', () => {
  let home = '';
  const country = () => join(home, 'country.mmdb');
  const asn = () => join(home, 'asn.mmdb');
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'holdfast-test-geo-'));
    await writeFile(country(), mmdbFile([['192.0.2.0/24', { country: { iso_code: 'DE' } }], ['203.0.113.0/25', { country: { iso_code: 'FR' } }]]));
    await writeFile(asn(), mmdbFile([['192.0.2.128/25', { autonomous_system_number: 64_500, autonomous_system_organization: 'Test' }]]));
  });
  afterAll(() => rm(home, { recursive: true }));

  test('countries and networks are found, and nothing for what is in neither', async () => {
    const geo = await openGeoLookup({ GATEWAY_GEO_COUNTRY_MMDB: country(), GATEWAY_GEO_ASN_MMDB: asn() }, silent);
    try {
      expect(geo.available).toEqual({ country: true, asn: true });
      expect(geo.lookup('192.0.2.1')).toEqual({ country: 'DE', asn: null });
      expect(geo.lookup('192.0.2.200')).toEqual({ country: 'DE', asn: 64_500 });
      expect(geo.lookup('203.0.113.127')).toEqual({ country: 'FR', asn: null });
      expect(geo.lookup('203.0.113.128')).toEqual({ country: null, asn: null });
      for (const ip of strange) expect(geo.lookup(ip)).toEqual({ country: null, asn: null });
    } finally {
      geo.close();
    }
  });

  test('a file that changes is read again, one that breaks is not', async () => {
    const geo = await openMmdb({ countryFile: undefined, asnFile: asn(), log: silent, pollMs: 30 });
    try {
      expect(geo.available).toEqual({ country: false, asn: true });
      await writeFile(asn(), mmdbFile([['192.0.2.0/24', { autonomous_system_number: 64_501 }]]));
      await until(() => geo.lookup('192.0.2.1').asn === 64_501, 'the new file');
      await writeFile(asn(), 'no database');
      await writeFile(asn(), mmdbFile([['192.0.2.0/25', { autonomous_system_number: 64_502 }], ['198.51.100.0/24', { autonomous_system_number: 64_503 }]]));
      await until(() => geo.lookup('198.51.100.1').asn === 64_503, 'the file after the broken one');
      await writeFile(asn(), 'no database');
      expect(geo.lookup('192.0.2.1').asn).toBe(64_502);
    } finally {
      geo.close();
    }
  });

  test('a file that is absent or broken ends the start', async () => {
    await expect(openGeoLookup({ GATEWAY_GEO_COUNTRY_MMDB: join(home, 'absent.mmdb') }, silent)).rejects.toThrow();
    await writeFile(join(home, 'broken.mmdb'), 'no database');
    await expect(openGeoLookup({ GATEWAY_GEO_ASN_MMDB: join(home, 'broken.mmdb') }, silent)).rejects.toThrow();
  });
});

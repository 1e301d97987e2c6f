import type { Log } from '../../core/log';
import type { GeoLookup } from '../../gateway/ports';
import { openMmdb } from './mmdb';
import { noGeo } from './none';

/** The files configured, or nothing. Errors: a file that cannot be read. */
export async function openGeoLookup(config: { GATEWAY_GEO_COUNTRY_MMDB?: string | undefined; GATEWAY_GEO_ASN_MMDB?: string | undefined }, log: Log): Promise<GeoLookup & { close(): void }> {
  const { GATEWAY_GEO_COUNTRY_MMDB: countryFile, GATEWAY_GEO_ASN_MMDB: asnFile } = config;
  return countryFile === undefined && asnFile === undefined ? noGeo : openMmdb({ countryFile, asnFile, log });
}

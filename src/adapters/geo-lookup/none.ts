import type { GeoLookup } from '../../gateway/ports';

/** Nothing is known of any address. */
export const noGeo: GeoLookup & { close(): void } = {
  available: { country: false, asn: false },
  lookup: () => ({ country: null, asn: null }),
  close: () => undefined,
};

import { unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { Reader, type AsnResponse, type CountryResponse, type Response } from 'maxmind';
import type { Log } from '../../core/log';
import type { GeoLookup } from '../../gateway/ports';

type Options = { countryFile: string | undefined; asnFile: string | undefined; log: Log; pollMs?: number };
type Opened<R> = { find(ip: string): R | null; close(): void };

/**
 * The operator's MaxMind files (MMDB 2.0), read into memory and again when they change. An address that is not in them, and
 * one that is none, is of no country and no network. Errors: a file that cannot be read at the start.
 */
export async function openMmdb({ countryFile, asnFile, log, pollMs = 5_000 }: Options): Promise<GeoLookup & { close(): void }> {
  const [countries, asns] = await Promise.all([open<CountryResponse>(countryFile, log, pollMs), open<AsnResponse>(asnFile, log, pollMs)]);
  return {
    available: { country: countries !== null, asn: asns !== null },
    lookup: (ip) => ({ country: countries?.find(ip)?.country?.iso_code ?? null, asn: asns?.find(ip)?.autonomous_system_number ?? null }),
    close() {
      countries?.close();
      asns?.close();
    },
  };
}

/** A changed file that cannot be read leaves the last good one in use. */
async function open<R extends Response>(path: string | undefined, log: Log, pollMs: number): Promise<Opened<R> | null> {
  if (path === undefined) return null;
  let reader = new Reader<R>(await readFile(path));
  watchFile(path, { persistent: false, interval: pollMs }, () => {
    readFile(path).then((bytes) => {
      reader = new Reader<R>(bytes);
      log.info({ path }, 'geo database loaded again');
    }).catch((error: unknown) => log.error({ err: error, path }, 'the geo database cannot be used; the last good one stays'));
  });
  return {
    find(ip) {
      try {
        return reader.get(ip);
      } catch {
        return null; // no address, or one of a family the file does not hold
      }
    },
    close: () => unwatchFile(path),
  };
}

import type { DnsDeps } from '../deps';
import type { RecordView, ZoneView } from '../schemas';
import type { RecordRow } from '../store/records';
import type { ZoneRow } from '../store/zones';
import { publishedVersionOf, viewRecord, viewZone } from '../view';
import type { Written } from '../write';

export function showZone(deps: DnsDeps, zone: ZoneRow, recordLimit: number | null, report?: unknown): ZoneView {
  return viewZone(zone, { platform: deps.dnsPlatform, recordLimit, report, days: { pending: deps.config.DNS_PENDING_DAYS, moved: deps.config.DNS_MOVED_DAYS } });
}

export { recordLimitOf } from '../zones';

export function showRecord(deps: DnsDeps, record: RecordRow, zone: ZoneRow): RecordView {
  return viewRecord(record, zone, deps.dnsPlatform);
}

/** Of a zone read before the write: nothing new can be published before the commit. */
export function publicationOf(zone: ZoneRow, { version, serial }: Written): { version: number; serial: number; published: boolean } {
  return { version, serial, published: version <= publishedVersionOf(zone) };
}

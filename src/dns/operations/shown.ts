import type { RateRule } from '../../http/operation';
import type { DnsDeps } from '../deps';
import { awaitPublished } from '../publication';
import { recordWarnings } from '../rules/warnings';
import type { RecordView, ZoneView } from '../schemas';
import { listGlueNames, type RecordRow } from '../store/records';
import type { ZoneRow } from '../store/zones';
import { publishedVersionOf, viewRecord, viewZone } from '../view';
import type { Written } from '../write';
import type { ZoneWritten } from '../zone-writes';

export function showZone(deps: DnsDeps, zone: ZoneRow, recordLimit: number | null, report?: unknown): ZoneView {
  return viewZone(zone, { platform: deps.dnsPlatform, recordLimit, report, days: { pending: deps.config.DNS_PENDING_DAYS, moved: deps.config.DNS_MOVED_DAYS } });
}

export { recordLimitOf } from '../zones';

/** Records as they are read. */
export async function showRecords(deps: DnsDeps, zone: ZoneRow, records: readonly RecordRow[]): Promise<RecordView[]> {
  const glue = new Set(await listGlueNames(deps.db.prisma, zone));
  return records.map((record) => viewRecord(record, zone, deps.dnsPlatform, glue.has(record.name) && (record.type === 'A' || record.type === 'AAAA')));
}

/** Records as they are written. */
export function showWritten(deps: DnsDeps, { zone, written: { index } }: ZoneWritten, records: readonly RecordRow[]): RecordView[] {
  return records.map((record) => viewRecord(record, zone, deps.dnsPlatform, index.isGlue(record)));
}

export type Publication = { version: number; serial: number; published: boolean };

/** What every record write answers. `zone` as the write left it: what nobody answers is published with the commit. */
export function showChange({ zone, written }: ZoneWritten): { affectedRecordIds: string[]; warnings: { code: string; message: string }[]; publication: Publication } {
  return {
    affectedRecordIds: written.affected.map(({ id }) => id),
    warnings: recordWarnings(written.index, [...written.created, ...written.named]), publication: publicationOf(zone, written),
  };
}

function publicationOf(zone: ZoneRow, { version, serial }: Written): Publication {
  return { version, serial, published: version <= publishedVersionOf(zone) };
}

/** Of one zone; a batch, a bulk delete and an import count once. */
export const recordWriteRate: RateRule = { name: 'dns-record-writes', limit: 20, periodSeconds: 1, burst: 200 };

type Answer = { publication: Publication; record?: RecordView; created?: RecordView[]; updated?: RecordView[] };

/** The answer of a write as it is once every server has the change, when the caller waits for that. Errors: none; after 2 s it stays as it was. */
export async function awaited<A extends Answer>(deps: DnsDeps, zoneId: string, wait: 'published' | undefined, answer: A): Promise<A> {
  if (!wait || answer.publication.published || !await awaitPublished(deps, zoneId, answer.publication.version)) return answer;
  const there = (records: RecordView[]) => records.map((record) => ({ ...record, published: true }));
  return {
    ...answer, publication: { ...answer.publication, published: true }, ...(answer.record ? { record: { ...answer.record, published: true } } : {}),
    ...(answer.created ? { created: there(answer.created) } : {}), ...(answer.updated ? { updated: there(answer.updated) } : {}),
  };
}

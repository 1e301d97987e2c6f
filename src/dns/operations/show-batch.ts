import type { DnsDeps } from '../deps';
import type { RecordRow } from '../store/records';
import type { ZoneWritten } from '../zone-writes';
import { showChange, showWritten } from './shown';

/** What a batch, an import and a restored version answer. `updated`: those to show as changed. */
export function showBatch(deps: DnsDeps, done: ZoneWritten, { dryRun, updated }: { dryRun: boolean; updated: readonly RecordRow[] }) {
  const { created, deleted } = done.written;
  return {
    created: showWritten(deps, done, created), updated: showWritten(deps, done, updated), deletedIds: deleted.map(({ id }) => id), ...showChange(done), dryRun,
  };
}

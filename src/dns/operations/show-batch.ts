import type { DnsDeps } from '../deps';
import type { ZoneWritten } from '../zone-writes';
import { showChange, showWritten } from './shown';

/** What a batch, an import and a restored version answer. */
export function showBatch(deps: DnsDeps, done: ZoneWritten, dryRun: boolean) {
  const { created, named, deleted } = done.written;
  return {
    created: showWritten(deps, done, created), updated: showWritten(deps, done, named), deletedIds: deleted.map(({ id }) => id), ...showChange(done), dryRun,
  };
}

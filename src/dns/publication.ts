import { setTimeout as pause } from 'node:timers/promises';
import type { DnsDeps } from './deps';
import { loadZone } from './store/zones';
import { publishedVersionOf } from './view';

const waitMs = 2_000;
const pollMs = 15;

/** Whether every server answers a version of the zone, once it does or after 2 s; at once for what nobody answers. */
export async function awaitPublished(deps: Pick<DnsDeps, 'db'>, zoneId: string, version: number): Promise<boolean> {
  for (const deadline = performance.now() + waitMs; ; await pause(pollMs)) {
    const zone = await loadZone(deps.db.prisma, zoneId);
    if (!zone || publishedVersionOf(zone) >= version) return true;
    if (performance.now() >= deadline) return false;
  }
}

import type { Log } from '../core/log';
import type { Listener } from '../db/listen';
import { ensureZoneCertificates, type CertificateDeps } from './certificates';

/**
 * Zones whose proxied names or status change get their certificates at once: the same signal that makes the gateway load its
 * routes. What is missed meanwhile is the sweep's.
 */
export function watchCertificates(deps: CertificateDeps & { listener: Listener; log: Log }): { stop(): Promise<void> } {
  const waiting = new Set<string>();
  let working: Promise<void> | null = null;
  let stopped = false;
  const work = async (): Promise<void> => {
    for (const zoneId of waiting) {
      if (stopped) return;
      waiting.delete(zoneId);
      await ensureZoneCertificates(deps, zoneId).catch((error: unknown) => deps.log.warn({ err: error, zoneId }, 'certificates of a zone wait for the sweep'));
    }
  };
  const unlisten = deps.listener.listen('dns_zone', (payload) => {
    const zoneId = payload?.split(':')[0];
    if (!zoneId || stopped) return;
    waiting.add(zoneId);
    working ??= work().finally(() => {
      working = null;
    });
  });
  return {
    async stop() {
      stopped = true;
      unlisten();
      await working;
    },
  };
}

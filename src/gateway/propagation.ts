import type { GatewayDeps } from './deps';
import type { Propagation } from './schemas';
import { readApplied, type PolicyRow } from './store/policies';

const waitMs = 1_000;
/** A notification may be lost with its connection. */
const pollMs = 100;

/** How far a version has come, once every live worker of the gateway judges by it or after a second. */
export async function awaitApplied(deps: Pick<GatewayDeps, 'db' | 'listener'>, zoneId: string, row: Pick<PolicyRow, 'version' | 'updatedAt'> | null): Promise<Propagation> {
  const version = row?.version ?? 0;
  let wake: () => void = () => undefined;
  const stop = deps.listener.listen('gateway_ack', (payload) => {
    if (payload === null || payload === zoneId) wake();
  });
  try {
    for (const deadline = performance.now() + waitMs; ;) {
      const heard = new Promise<void>((done) => {
        wake = done;
      });
      const { instances, applied, appliedAt } = await readApplied(deps.db.prisma, zoneId, version);
      const leftMs = deadline - performance.now();
      if (applied === instances || leftMs <= 0) {
        const ms = appliedAt && row ? Math.max(0, appliedAt.getTime() - row.updatedAt.getTime()) : null;
        return { version, instances, applied, appliedAt: appliedAt?.toISOString() ?? null, ms };
      }
      await within(Math.min(leftMs, pollMs), heard);
    }
  } finally {
    stop();
  }
}

async function within(ms: number, heard: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([heard, new Promise<void>((done) => {
    timer = setTimeout(done, ms);
  })]);
  clearTimeout(timer);
}

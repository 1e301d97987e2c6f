import type { Log } from '../../../core/log';
import type { Database } from '../../../db/client';
import { registerHost } from '../../../postgres/store/hosts';

const heartbeatMs = 30_000;
const retryMs = 1_000;

export type Registration = { name: string; region: string; capacity: { bytes: number; services: number } };

/** The host's row says what it offers and that it lives, as long as the database is there to be told. Ends after the first attempt. */
export async function keepRegistered(db: Database, { name, region, capacity }: Registration, log: Log): Promise<{ stop(): void }> {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const beat = async () => {
    const told = await registerHost(db.prisma, { name, region, backend: 'embedded', capacityBytes: capacity.bytes, maxServices: capacity.services })
      .then(() => true, (error: unknown) => {
        log.warn({ err: error }, 'the instance host could not report to the database');
        return false;
      });
    if (!stopped) timer = setTimeout(() => void beat(), told ? heartbeatMs : retryMs).unref();
  };
  await beat();
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

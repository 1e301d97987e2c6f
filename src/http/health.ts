import type { Express, Response } from 'express';
import { servePage } from './server';

/** Rejects with the reason, in a word or two, when the part does not work. */
export type Probe = () => Promise<void>;

export type HealthDeps = { database: Probe; migrations: Probe; temporal: Probe };

const probeDeadlineMs = 2_000;

/**
 * `/healthz`: the process is up. `/readyz`: database and migrations decide; Temporal is reported and decides nothing,
 * because accepted work waits for it in the database. The only answers with a status outside api.md §4.
 */
export function health(app: Express, probes: HealthDeps): void {
  servePage(app, ['/healthz'], (_, response) => answer(response, 200, { ok: true }));
  servePage(app, ['/readyz'], async (_, response) => {
    const [database, migrations, temporal] = await Promise.all([outcome(probes.database), outcome(probes.migrations), outcome(probes.temporal)]);
    const ok = database === 'ok' && migrations === 'ok';
    answer(response, ok ? 200 : 503, { ok, checks: { database, migrations, temporal } });
  });
}

async function outcome(probe: Probe): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve('no answer'), probeDeadlineMs);
  });
  try {
    return await Promise.race([probe().then(() => 'ok'), deadline]);
  } catch (error) {
    return error instanceof ProbeFailure ? error.message : 'failed';
  } finally {
    clearTimeout(timer);
  }
}

/** A reason fit for whoever asks; any other error is only 'failed'. */
export class ProbeFailure extends Error {}

function answer(response: Response, status: number, body: Record<string, unknown>): void {
  response.status(status).setHeader('Content-Type', 'application/json; charset=utf-8');
  response.end(JSON.stringify(body));
}

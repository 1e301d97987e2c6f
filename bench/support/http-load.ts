import { Agent, request } from 'node:http';
import { quantile } from './database';

export type Load = { url: string; headers: Record<string, string>; body: string; connections: number; seconds: number; /** Requests a second, sent whether earlier ones were answered or not; none: as fast as answers come. */ perSecond?: number };
export type Shot = { perSecond: number; p50Ms: number; p99Ms: number; others: number };

/** POSTs over kept-alive connections; `others` are answers that are not 202. Latency at a given rate counts from when a request was due. */
export async function shoot(load: Load): Promise<Shot> {
  const agent = new Agent({ keepAlive: true, maxSockets: load.connections });
  const times: number[] = [];
  let others = 0;
  const one = async (dueAt: number) => {
    if (await post(load, agent) !== 202) others += 1;
    times.push(performance.now() - dueAt);
  };
  const startedAt = performance.now();
  const end = startedAt + load.seconds * 1_000;
  if (load.perSecond === undefined) {
    await Promise.all(Array.from({ length: load.connections }, async () => {
      while (performance.now() < end) await one(performance.now());
    }));
  } else {
    const pending = new Set<Promise<void>>();
    for (let sent = 0; sent < load.perSecond * load.seconds;) {
      const due = Math.floor(((performance.now() - startedAt) / 1_000) * load.perSecond);
      for (; sent <= due && sent < load.perSecond * load.seconds; sent += 1) {
        const shot = one(startedAt + (sent / load.perSecond) * 1_000).finally(() => pending.delete(shot));
        pending.add(shot);
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await Promise.all(pending);
  }
  agent.destroy();
  return { perSecond: times.length / ((performance.now() - startedAt) / 1_000), p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99), others };
}

function post({ url, headers, body }: Load, agent: Agent): Promise<number> {
  return new Promise((done, fail) => {
    const sent = request(url, { method: 'POST', agent, headers: { ...headers, 'content-length': Buffer.byteLength(body) } }, (response) => {
      response.on('error', fail).on('end', () => done(response.statusCode ?? 0)).resume();
    });
    sent.on('error', fail).end(body);
  });
}

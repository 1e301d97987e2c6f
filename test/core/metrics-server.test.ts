import { createMetrics } from '../../src/core/metrics';
import { serveMetrics } from '../../src/core/metrics-server';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function serve(ok = true, address = '127.0.0.1:0') {
  const metrics = createMetrics('worker');
  const server = await serveMetrics(address, metrics.registry, () => ({ ok, checks: { database: ok ? 'ok' : 'failed' } }));
  closers.push(() => server.close());
  return { metrics, server, get: (path: string) => fetch(`http://${server.address}${path}`) };
}

test('/metrics tells what was counted, labelled with the process', async () => {
  const { metrics, get } = await serve();
  metrics.overdueWork.inc({ rule: 'postgres-service' });
  const response = await get('/metrics');
  expect(response.headers.get('content-type')).toContain('text/plain');
  expect(await response.text()).toContain('overdue_work{rule="postgres-service",process="worker"} 1');
});

test('/healthz is 200 while the process is up; /readyz is 503 until it does its work', async () => {
  expect(await Promise.all(['/healthz', '/readyz'].map(async (path) => (await (await serve(false)).get(path)).status))).toEqual([200, 503]);
  const { get } = await serve(true);
  expect(await (await get('/readyz')).json()).toEqual({ ok: true, checks: { database: 'ok' } });
});

test('a taken port is an error at once', async () => {
  const { server } = await serve();
  await expect(serve(true, server.address)).rejects.toThrow('EADDRINUSE');
});

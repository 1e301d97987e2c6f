import { createServer, type ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import { listen } from './listen';

export type Readiness = { ok: boolean } & Record<string, unknown>;

/**
 * Serves `/metrics`, `/healthz` (the process is up) and `/readyz` (it does its work; 503 until then) on a port of its own,
 * away from customers. `address` is host:port; port 0 takes a free one. Errors: the port is taken.
 */
export async function serveMetrics(
  address: string, registry: Registry, readiness: () => Promise<Readiness> | Readiness,
): Promise<{ address: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    void answer(request.url ?? '/', response, registry, readiness).catch(() => respond(response, 500, { ok: false }));
  });
  const bound = await listen(server, address);
  return {
    address: bound,
    close: () => new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    }),
  };
}

async function answer(url: string, response: ServerResponse, registry: Registry, readiness: () => Promise<Readiness> | Readiness): Promise<void> {
  switch (url.split('?')[0]) {
    case '/metrics':
      response.writeHead(200, { 'Content-Type': registry.contentType }).end(await registry.metrics());
      return;
    case '/healthz':
      respond(response, 200, { ok: true });
      return;
    case '/readyz': {
      const state = await readiness();
      respond(response, state.ok ? 200 : 503, state);
      return;
    }
    default:
      respond(response, 404, { message: 'There is /metrics, /healthz and /readyz.' });
  }
}

function respond(response: ServerResponse, status: number, body: Record<string, unknown>): void {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8' }).end(`${JSON.stringify(body)}\n`);
}

import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export type GatewayMetrics = {
  sessions: Gauge;
  logins: Counter<'result'>;
  refusals: Counter<'sqlstate'>;
  acquireSeconds: Histogram;
};

export function createGatewayMetrics(registry: Registry): GatewayMetrics {
  const registers = [registry];
  return {
    sessions: new Gauge({ registers, name: 'postgres_gateway_sessions', help: 'Sessions that pass through the Postgres gateway' }),
    logins: new Counter({ registers, name: 'postgres_gateway_logins', help: 'Logins by how the server answered', labelNames: ['result'] }),
    refusals: new Counter({ registers, name: 'postgres_gateway_refusals', help: 'Connections the gateway itself refused', labelNames: ['sqlstate'] }),
    acquireSeconds: new Histogram({
      registers, name: 'postgres_gateway_acquire_seconds', help: 'From admission to a running server, wake included',
      buckets: [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 1, 5, 15],
    }),
  };
}

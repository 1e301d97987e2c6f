import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export interface GatewayMetrics {
  /** Every request to a served host by its outcome. */
  readonly requests: Counter<'outcome'>;
  /** What was refused before a zone was known. */
  readonly refused: Counter<'reason'>;
  readonly originFailures: Counter<'reason'>;
  readonly badPolicies: Counter;
  readonly connections: Gauge;
  readonly zones: Gauge;
  readonly propagationSeconds: Histogram;
}

export function createGatewayMetrics(registry: Registry): GatewayMetrics {
  const registers = [registry];
  return {
    requests: new Counter({ registers, name: 'gateway_requests', help: 'Requests to served hosts', labelNames: ['outcome'] }),
    refused: new Counter({ registers, name: 'gateway_refused', help: 'Requests and connections refused before a zone was known', labelNames: ['reason'] }),
    originFailures: new Counter({ registers, name: 'gateway_origin_failures', help: 'Attempts at an origin that failed', labelNames: ['reason'] }),
    badPolicies: new Counter({ registers, name: 'gateway_bad_policies', help: 'Stored policies that could not be read; the last good one serves' }),
    connections: new Gauge({ registers, name: 'gateway_connections', help: 'Open connections of clients' }),
    zones: new Gauge({ registers, name: 'gateway_zones', help: 'Zones that are served' }),
    propagationSeconds: new Histogram({ registers, name: 'gateway_zone_load_seconds', help: 'From hearing of a change to serving by it', buckets: [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1] }),
  };
}

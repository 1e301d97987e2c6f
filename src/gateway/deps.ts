import type { Clock } from '../core/clock';
import type { Cursors } from '../core/cursor';
import type { Database } from '../db/client';
import type { Listener } from '../db/listen';
import type { GeoLookup, PolicyEvaluator } from './ports';

/** What the operations of the security gateway need. */
export interface GatewayDeps {
  readonly db: Database;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly listener: Listener;
  readonly limiter: { take(rule: { name: string; limit: number; periodSeconds: number; burst?: number }, key: string): Promise<unknown> };
  readonly policyEvaluator: PolicyEvaluator;
  /** Which databases the operator has given the gateway. */
  readonly gatewayGeo: GeoLookup['available'];
  readonly certificateIssuerName: 'self_signed' | 'acme';
}

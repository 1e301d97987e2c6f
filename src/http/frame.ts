import type { Cause } from '../core/caller';
import type { Clock } from '../core/clock';
import type { Id } from '../core/ids';
import type { Log } from '../core/log';
import type { Database } from '../db/client';
import type { OperationRow } from '../operations/store';
import type { Authenticator } from './authenticate';
import type { TrustedProxies } from './client-address';
import type { RateRule } from './operation';
import type { Limiter } from './rate-limit';

/** What the frame itself needs; a product's own needs come on top. */
export interface FrameDeps {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly authenticator: Authenticator;
  readonly limiter: Limiter;
  readonly managementRate: RateRule;
  readonly trustedProxies: TrustedProxies;
  readonly dispatcher: { start(operation: OperationRow): Promise<unknown> };
  /** Notes a member's 403 in the organisation's audit chain. */
  recordDenial(denial: { orgId: Id<'org'>; projectId: Id<'prj'> | null; cause: Cause }): Promise<void>;
  /** Called once per answered request, for metrics. */
  observe?(facts: { operation: string; method: string; status: number; code: string | null; seconds: number }): void;
}

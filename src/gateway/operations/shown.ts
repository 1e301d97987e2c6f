import type { GatewayDeps } from '../deps';
import type { WrittenPolicy } from '../policies';
import { awaitApplied } from '../propagation';
import type { PolicyView, Propagation } from '../schemas';
import { viewPolicy } from '../view';

export const tag = 'Security gateway';
export const base = '/dns/zones/:zoneId/security-gateway';
/** Of one zone. */
export const writeRate = { name: 'gateway-policy-writes', limit: 30, periodSeconds: 60 };
export const bodyMaxBytes = 512 * 1024;

/** `"12"`, of the version. */
export function etagOf(version: number): { headers: { ETag: string } } {
  return { headers: { ETag: `"${version}"` } };
}

type Answer = { policy: PolicyView; warnings: WrittenPolicy['warnings']; propagation?: Propagation; changes?: WrittenPolicy['changes'] };

/** What every write of a policy answers: a dry run its changes, another how far the gateway has come with it within a second. */
export async function showWritten(deps: GatewayDeps, written: WrittenPolicy, dryRun: boolean): Promise<Answer> {
  const policy = viewPolicy(written.zone, written.row, written.policy);
  if (dryRun) return { policy, changes: written.changes, warnings: written.warnings };
  return { policy, propagation: await awaitApplied(deps, written.zone.id, written.row), warnings: written.warnings };
}

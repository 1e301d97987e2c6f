import { createBillingActivities, type BillingActivityDeps } from './billing';
import { createDnsActivities, type DnsActivityDeps } from './dns';
import { createGatewayActivities, type GatewayActivityDeps } from './gateway';
import { createIdentityActivities, type IdentityActivityDeps } from './identity';
import { createMailActivities, type MailActivityDeps } from './mail';
import { createPostgresActivities, type PostgresActivityDeps } from './postgres';
import { createSystemActivities, type SystemActivityDeps } from './system';

export type ActivityDeps = SystemActivityDeps & BillingActivityDeps & IdentityActivityDeps & PostgresActivityDeps & DnsActivityDeps & GatewayActivityDeps & MailActivityDeps;

/** Every activity of every product; a worker registers them all, its queues decide which it is asked for. Names are public. */
export function createActivities(deps: ActivityDeps) {
  return {
    ...createBillingActivities(deps),
    ...createDnsActivities(deps),
    ...createGatewayActivities(deps),
    ...createIdentityActivities(deps),
    ...createMailActivities(deps),
    ...createPostgresActivities(deps),
    ...createSystemActivities(deps),
  };
}

import { billingOperations, type BillingDeps } from '../billing/operations';
import { acceptedWorkOperations, type AcceptedWorkDeps } from './accepted-work';
import type { Operation } from './operation';
import { identityOperations, type IdentityDeps } from '../identity/operations';
import { dnsOperations, type DnsDeps } from '../dns/operations';
import { gatewayOperations, type GatewayDeps } from '../gateway/operations';
import { mailOperations, type MailDeps } from '../mail/operations';
import { postgresOperations, type PostgresDeps } from '../postgres/operations';
import type { FrameDeps } from './frame';

/** What the handlers of all products need together; deps.ts provides it. */
export type RouteDeps = FrameDeps & AcceptedWorkDeps & IdentityDeps & PostgresDeps & BillingDeps & DnsDeps & MailDeps & GatewayDeps;

/** Every route of the product. A route is declared nowhere else: router, checks, OpenAPI and the documentation follow this list. */
export const routes: readonly Operation<RouteDeps>[] = [
  ...identityOperations,
  ...acceptedWorkOperations,
  ...mailOperations,
  ...dnsOperations,
  ...gatewayOperations,
  ...postgresOperations,
  ...billingOperations,
];

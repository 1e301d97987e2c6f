import { viewOperation } from '../operations/view';
import type { PostgresDeps } from './service';
import type { ServiceRow } from './store/services';
import { viewService } from './view';

type OperationRow = Parameters<typeof viewOperation>[0];

/** The service as every answer shows it. */
export function view(deps: PostgresDeps, row: ServiceRow) {
  return viewService(row, deps.publicGateway.addressOf(row));
}

/** What every 202 says (contract postgres.md §3). */
export function accepted<O extends OperationRow | null>(deps: PostgresDeps, service: ServiceRow, operation: O) {
  return { serviceId: service.id, status: service.status, service: view(deps, service), operation: operation && viewOperation(operation) };
}

/** Where the service is read. */
export function locationOf({ org, project }: { org: { slug: string }; project: { slug: string } }, serviceId: string): { headers: { Location: string } } {
  return { headers: { Location: `/v1/api/orgs/${org.slug}/projects/${project.slug}/postgres/services/${serviceId}` } };
}

import { requireFresh } from '../core/freshness';
import { operationsOf, Reply } from '../http/operation';
import { accepted, locationOf, view } from './answers';
import { maskedCredentials, revealCredentials } from './credentials';
import { deleteService } from './deletion';
import { backupOperations } from './operations/backups';
import { changeOperations } from './operations/changes';
import { plans } from './rules';
import {
  acceptedAnswer, createServiceBody, credentialsAnswer, credentialsQuery, deletedAnswer, deleteServiceQuery, emptyBody, getServiceQuery,
  listServicesAnswer, listServicesQuery, metricsAnswer, optionsAnswer, serviceAnswer, updateServiceBody,
} from './schemas';
import { choosePlace, createService, getService, pageServices, regionsOf, updateService, type PostgresDeps } from './service';
import { viewMetrics } from './storage';
import { findObservation } from './store/observations';
import { viewLimits } from './view';

export type { PostgresDeps } from './service';

const { project } = operationsOf<PostgresDeps>();
const tag = 'Postgres';
const noStoreHeaders = { 'Cache-Control': 'no-store, private' };

const listPostgresServices = project('postgres:read')({
  id: 'listPostgresServices', method: 'get', path: '/postgres/services', tag,
  summary: 'All Postgres services of the project, newest first',
  description: 'Deleted services are listed only with status=deleted.',
  query: listServicesQuery,
  answer: listServicesAnswer,
  errors: ['invalid_cursor'],
  handle: async ({ deps, caller, query }) => {
    const { items, nextCursor, hasMore } = await pageServices(deps, caller.project.id, query);
    return { services: items.map((row) => view(deps, row)), nextCursor, hasMore };
  },
});

const createPostgresService = project('postgres:create')({
  id: 'createPostgresService', method: 'post', path: '/postgres/services', tag,
  summary: 'Create a Postgres service',
  description: 'Accepted at once; follow the operation, then read the credentials.',
  body: createServiceBody,
  answer: acceptedAnswer,
  status: 202,
  errors: ['plan_limit_reached', 'trial_already_used', 'payment_required', 'spend_limit_reached', 'invalid_state'],
  idempotent: true,
  handle: async ({ deps, caller, body, cause, transact }) => {
    const place = await choosePlace(deps, body);
    return transact(async (tx) => {
      const { service, operation } = await createService(tx, { caller, body, place, cause });
      return new Reply(accepted(deps, service, operation), locationOf(caller, service.id));
    });
  },
});

const getPostgresService = project('postgres:read')({
  id: 'getPostgresService', method: 'get', path: '/postgres/services/:serviceId', tag,
  summary: 'A Postgres service',
  query: getServiceQuery,
  answer: serviceAnswer,
  handle: async ({ deps, caller, params, query }) =>
    ({ service: view(deps, await getService(deps, caller.project.id, params.serviceId, { deleted: query.deleted ?? false })) }),
});

const updatePostgresService = project('postgres:manage')({
  id: 'updatePostgresService', method: 'patch', path: '/postgres/services/:serviceId', tag,
  summary: 'Change the settings of a Postgres service',
  body: updateServiceBody,
  answer: serviceAnswer,
  errors: ['invalid_state'],
  handle: ({ deps, caller, params, body, cause, transact }) => transact(async (tx) =>
    ({ service: view(deps, await updateService(tx, { caller, serviceId: params.serviceId, body, cause })) })),
});

const deletePostgresService = project('postgres:delete')({
  id: 'deletePostgresService', method: 'delete', path: '/postgres/services/:serviceId', tag,
  summary: 'Delete a Postgres service',
  description: 'Nobody gets in from the answer on. The data can be brought back until recoverableUntil, unless purge=true.',
  query: deleteServiceQuery,
  answer: deletedAnswer,
  status: 202,
  errors: ['deletion_protected', 'reauthentication_required'],
  handle: ({ deps, caller, params, query, cause, transact }) => {
    const purge = query.purge ?? false;
    if (purge) requireFresh(caller, deps.clock.now());
    return transact(async (tx) => {
      const { service, operation } = await deleteService(tx, { caller, serviceId: params.serviceId, purge, cause });
      return new Reply(accepted(deps, service, operation), locationOf(caller, service.id));
    });
  },
});

const getPostgresCredentials = project('postgres:read')({
  id: 'getPostgresCredentials', method: 'get', path: '/postgres/services/:serviceId/credentials', tag,
  summary: 'The connection string, masked unless reveal=true',
  description: 'reveal=true needs postgres:credentials and a fresh session, and is written to the audit log first.',
  query: credentialsQuery,
  answer: credentialsAnswer,
  noStore: true,
  errors: ['invalid_state', 'forbidden', 'reauthentication_required', 'rate_limited'],
  handle: async ({ deps, caller, params: { serviceId }, query, cause }) => new Reply(
    query.reveal ? await revealCredentials(deps, { caller, serviceId, cause }) : await maskedCredentials(deps, caller, serviceId),
    { headers: noStoreHeaders }),
});

const revealPostgresCredentials = project('postgres:credentials')({
  id: 'revealPostgresCredentials', method: 'post', path: '/postgres/services/:serviceId/credentials/reveal', tag,
  summary: 'The connection string with its password',
  description: 'Needs a fresh session; written to the audit log first.',
  body: emptyBody,
  bodyOptional: true,
  answer: credentialsAnswer,
  noStore: true,
  errors: ['invalid_state', 'reauthentication_required', 'rate_limited'],
  handle: async ({ deps, caller, params: { serviceId }, cause }) =>
    new Reply(await revealCredentials(deps, { caller, serviceId, cause }), { headers: noStoreHeaders }),
});

const getPostgresOptions = project('postgres:read')({
  id: 'getPostgresOptions', method: 'get', path: '/postgres/options', tag,
  summary: 'Plans, regions and versions to choose from',
  answer: optionsAnswer,
  handle: async ({ deps }) => {
    const [regions, { region, version }] = await Promise.all([regionsOf(deps), choosePlace(deps, {})]);
    return { options: { plans: plans.map((code) => ({ code, limits: viewLimits(code) })), regions, defaults: { region, version } } };
  },
});

const getPostgresMetrics = project('postgres:read')({
  id: 'getPostgresMetrics', method: 'get', path: '/postgres/services/:serviceId/metrics', tag,
  summary: 'What the database is doing',
  description: 'As the server said within the last minute or so. One that does not run gives zeroes and is not started.',
  answer: metricsAnswer,
  handle: async ({ deps, caller, params }) => {
    const service = await getService(deps, caller.project.id, params.serviceId, { deleted: false });
    return { metrics: viewMetrics(service, await findObservation(deps.db.prisma, service.id)) };
  },
});

/** Operations of Postgres services; http/routes.ts adds them to the one list. */
export const postgresOperations = [
  listPostgresServices, createPostgresService, getPostgresService, updatePostgresService, deletePostgresService, getPostgresCredentials,
  revealPostgresCredentials, getPostgresOptions, getPostgresMetrics, ...changeOperations, ...backupOperations,
];

import { operationsOf, Reply } from '../../http/operation';
import { viewOperation } from '../../operations/view';
import { accepted, locationOf } from '../answers';
import { pageBackups, requestBackup } from '../backups';
import { restoreService } from '../restore';
import { acceptedAnswer, emptyBody } from '../schemas';
import { backupAcceptedAnswer, listBackupsAnswer, listBackupsQuery, restoreServiceBody } from '../schemas/backups';
import type { PostgresDeps } from '../service';
import { viewBackup } from '../view';

const { project } = operationsOf<PostgresDeps>();
const tag = 'Postgres';

const listPostgresBackups = project('postgres:read')({
  id: 'listPostgresBackups', method: 'get', path: '/postgres/services/:serviceId/backups', tag,
  summary: 'Backups of a Postgres service, newest first',
  query: listBackupsQuery,
  answer: listBackupsAnswer,
  errors: ['invalid_cursor', 'service_suspended'],
  handle: async ({ deps, caller, params, query }) => {
    const { items, nextCursor, hasMore } = await pageBackups(deps, caller, params.serviceId, query);
    return { backups: items.map(viewBackup), nextCursor, hasMore };
  },
});

const createPostgresBackup = project('postgres:manage')({
  id: 'createPostgresBackup', method: 'post', path: '/postgres/services/:serviceId/backups', tag,
  summary: 'Back up a Postgres service now',
  description: 'Beside the daily ones; five are kept per service.',
  body: emptyBody, bodyOptional: true, answer: backupAcceptedAnswer, status: 202, idempotent: true,
  errors: ['invalid_state', 'plan_limit_reached', 'service_suspended'],
  handle: ({ caller, params: { serviceId }, cause, transact }) => transact(async (tx) => {
    const { backup, operation } = await requestBackup(tx, { caller, serviceId, cause });
    const { headers: { Location } } = locationOf(caller, serviceId);
    return new Reply({ backup: viewBackup(backup), operation: viewOperation(operation) }, { headers: { Location: `${Location}/backups` } });
  }),
});

const restorePostgresService = project('postgres:manage')({
  id: 'restorePostgresService', method: 'post', path: '/postgres/services/:serviceId/restore', tag,
  summary: 'Make a new service of an earlier state of this one',
  description: 'This service goes on as it is. A time that cannot be reached is refused with earliest and latest.',
  body: restoreServiceBody, bodyOptional: true, answer: acceptedAnswer, status: 202, idempotent: true,
  errors: ['invalid_state', 'service_suspended', 'plan_limit_reached', 'trial_already_used', 'payment_required', 'spend_limit_reached'],
  handle: ({ deps, caller, params: { serviceId }, body, cause, transact }) => transact(async (tx) => {
    const { service, operation } = await restoreService(tx, { caller, serviceId, body, cause });
    return new Reply(accepted(deps, service, operation), locationOf(caller, service.id));
  }),
});

export const backupOperations = [listPostgresBackups, createPostgresBackup, restorePostgresService];

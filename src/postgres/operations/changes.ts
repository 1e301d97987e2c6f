import type { Cause, ProjectCaller } from '../../core/caller';
import type { Tx } from '../../db/transaction';
import { operationsOf, Reply } from '../../http/operation';
import { accepted, locationOf } from '../answers';
import { resumeService, rotateCredentials, suspendService } from '../change-requests';
import { retryService, undeleteService } from '../revival';
import { acceptedAnswer, emptyBody, rotateCredentialsBody } from '../schemas';
import type { Accepted, PostgresDeps } from '../service';

const { project } = operationsOf<PostgresDeps>();
const tag = 'Postgres';
const again = ['plan_limit_reached', 'trial_already_used', 'payment_required', 'spend_limit_reached'] as const;

type Call = {
  deps: PostgresDeps; caller: ProjectCaller; params: { serviceId: string }; cause: Cause;
  transact<T extends Reply<ReturnType<typeof accepted>>>(work: (tx: Tx) => Promise<T>): Promise<T>;
};

/** Every change is accepted in the same way; only what is decided differs. */
function accept({ deps, caller, params: { serviceId }, cause, transact }: Call, decide: (tx: Tx, request: { caller: ProjectCaller; serviceId: string; cause: Cause }) => Promise<Accepted>) {
  return transact(async (tx) => {
    const { service, operation } = await decide(tx, { caller, serviceId, cause });
    return new Reply(accepted(deps, service, operation), locationOf(caller, service.id));
  });
}

const rotatePostgresCredentials = project('postgres:credentials')({
  id: 'rotatePostgresCredentials', method: 'post', path: '/postgres/services/:serviceId/credentials/rotate', tag,
  summary: 'Replace the password',
  description: 'immediate: the same login with a new password, sessions are ended. overlap: the other login with a new password, the former one stays good for overlapSeconds.',
  body: rotateCredentialsBody, bodyOptional: true, answer: acceptedAnswer, status: 202, idempotent: true,
  errors: ['invalid_state', 'service_suspended'],
  handle: (call) => accept(call, (tx, request) => rotateCredentials(tx, { ...request, body: call.body })),
});

const suspendPostgresService = project('postgres:manage')({
  id: 'suspendPostgresService', method: 'post', path: '/postgres/services/:serviceId/suspend', tag,
  summary: 'Stop a Postgres service and keep its data',
  description: 'Sessions are ended and nobody gets in until it is resumed. It is paid for all the same.',
  body: emptyBody, bodyOptional: true, answer: acceptedAnswer, status: 202, idempotent: true,
  errors: ['invalid_state'],
  handle: (call) => accept(call, suspendService),
});

const resumePostgresService = project('postgres:manage')({
  id: 'resumePostgresService', method: 'post', path: '/postgres/services/:serviceId/resume', tag,
  summary: 'Start a suspended Postgres service again',
  body: emptyBody, bodyOptional: true, answer: acceptedAnswer, status: 202, idempotent: true,
  errors: ['invalid_state', 'payment_required', 'service_suspended'],
  handle: (call) => accept(call, resumeService),
});

const retryPostgresService = project('postgres:create')({
  id: 'retryPostgresService', method: 'post', path: '/postgres/services/:serviceId/retry', tag,
  summary: 'Provision a failed Postgres service again',
  body: emptyBody, bodyOptional: true, answer: acceptedAnswer, status: 202, idempotent: true,
  errors: ['invalid_state', ...again],
  handle: (call) => accept(call, retryService),
});

const undeletePostgresService = project('postgres:manage')({
  id: 'undeletePostgresService', method: 'post', path: '/postgres/services/:serviceId/undelete', tag,
  summary: 'Bring a deleted Postgres service back',
  description: 'Until recoverableUntil, with the data it had and a new password.',
  body: emptyBody, bodyOptional: true, answer: acceptedAnswer, status: 202, idempotent: true,
  errors: ['invalid_state', ...again],
  handle: (call) => accept(call, undeleteService),
});

export const changeOperations = [
  rotatePostgresCredentials, suspendPostgresService, resumePostgresService, retryPostgresService, undeletePostgresService,
];

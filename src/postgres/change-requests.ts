import { planAllowing } from '../billing/service';
import { systemCause, type Cause, type ProjectCaller } from '../core/caller';
import { AppError } from '../core/errors';
import type { Tx } from '../db/transaction';
import type { OperationRow } from '../operations/store';
import { acceptChange } from './changes';
import { invalidState, noService, quotaResource } from './faults';
import { namesOf, planLimits, plans, type Plan } from './rules';
import type { RotateCredentials } from './schemas';
import type { Accepted } from './service';
import { findCredentials, insertPending } from './store/credentials';
import { lockAnyService, lockOfOrganization, lockService, type ServiceRow } from './store/services';

type Request = { caller: ProjectCaller; serviceId: string; cause: Cause };

/**
 * The next password is decided; its run makes it. `immediate` keeps the login, `overlap` takes the other one.
 * Errors: `not_found`; `service_suspended`; `invalid_state` unless available.
 */
export async function rotateCredentials(tx: Tx, { caller, serviceId, body, cause }: Request & { body: RotateCredentials }): Promise<Accepted> {
  const service = await requireService(tx, caller, serviceId);
  if (service.status === 'suspended') throw new AppError('service_suspended', 'The service is suspended. Resume it, then repeat this request.', { statusReason: service.statusReason });
  const shown = (await findCredentials(tx, serviceId))?.shown;
  if (!shown) throw noService();
  const mode = body.mode ?? 'immediate';
  const accepted = await acceptChange(tx, service, { change: 'rotate', cause, changes: [{ field: 'credentials.version', from: shown.version, to: shown.version + 1 }, { field: 'mode', from: null, to: mode }] });
  const [first, second] = namesOf(service.id, service.isolation).logins;
  const other = shown.login === first ? second : first;
  await insertPending(tx, serviceId, {
    login: mode === 'overlap' ? other : shown.login, overlapSeconds: mode === 'overlap' ? body.overlapSeconds ?? 3_600 : null,
    endSessions: body.terminateConnections ?? mode === 'immediate',
  });
  return accepted;
}

/** Nobody gets in and nothing runs until it is resumed; the data stays. Errors: `not_found`, `invalid_state` unless available. */
export async function suspendService(tx: Tx, { caller, serviceId, cause }: Request): Promise<Accepted> {
  return acceptChange(tx, await requireService(tx, caller, serviceId), { change: 'suspend', reason: 'user', cause });
}

/** Errors: `not_found`; `invalid_state` unless suspended; `payment_required` after a trial or for an unpaid invoice; `service_suspended` by an operator. */
export async function resumeService(tx: Tx, { caller, serviceId, cause }: Request): Promise<Accepted> {
  const service = await requireService(tx, caller, serviceId);
  if (service.status === 'suspended') await requireResumable(tx, service);
  return acceptChange(tx, service, { change: 'resume', cause });
}

/**
 * For billing: the service is on its way to the plan; its run ends with `switchPlan`. Errors: `not_found`; `invalid_state` in transition;
 * `plan_limit_reached` where its data does not fit.
 */
export async function changePlan(tx: Tx, { resourceId, plan, cause }: { resourceId: string; plan: string; cause: Cause }): Promise<OperationRow> {
  const service = await lockAnyService(tx, resourceId);
  if (!service || service.status === 'deleted') throw noService();
  const target = plans.find((known) => known === plan);
  if (!target) throw invalidState(service, `There is no plan ${plan} of Postgres services.`);
  await requireFit(tx, service, target);
  const { operation } = await acceptChange(tx, service, { change: 'plan', pendingPlan: target, cause, changes: [{ field: 'pendingPlan', from: null, to: target }] });
  return operation;
}

/** For billing, before it locks anything of its own: a deletion locks the service first and its subscription after. */
export async function lockForBilling(tx: Tx, resourceId: string): Promise<void> {
  await lockAnyService(tx, resourceId);
}

/** For billing: no service of the organisation runs while its account is suspended. One in transition is met by the next call. */
export async function suspendForPayment(tx: Tx, orgId: string): Promise<void> {
  const cause = systemCause('suspendForPayment');
  for (const service of await lockOfOrganization(tx, orgId, 'available', null)) await acceptChange(tx, service, { change: 'suspend', reason: 'payment_overdue', cause });
}

/** For billing: the account is paid. What is suspended for another reason stays so. */
export async function resumeFromPayment(tx: Tx, orgId: string): Promise<void> {
  const cause = systemCause('resumeFromPayment');
  for (const service of await lockOfOrganization(tx, orgId, 'suspended', 'payment_overdue')) await acceptChange(tx, service, { change: 'resume', cause });
}

/** By an operator: only an operator resumes it. Errors: `not_found`, `invalid_state` unless available. */
export async function suspendByOperator(tx: Tx, serviceId: string): Promise<Accepted> {
  return acceptChange(tx, await requireAny(tx, serviceId), { change: 'suspend', reason: 'admin', cause: systemCause('suspendByOperator') });
}

/** Whatever it was suspended for. Errors: `not_found`, `invalid_state` unless suspended. */
export async function resumeByOperator(tx: Tx, serviceId: string): Promise<Accepted> {
  return acceptChange(tx, await requireAny(tx, serviceId), { change: 'resume', cause: systemCause('resumeByOperator') });
}

async function requireService(tx: Tx, caller: ProjectCaller, serviceId: string): Promise<ServiceRow> {
  const service = await lockService(tx, caller.project.id, serviceId);
  if (!service || service.status === 'deleted') throw noService();
  return service;
}

async function requireAny(tx: Tx, serviceId: string): Promise<ServiceRow> {
  const service = await lockAnyService(tx, serviceId);
  if (!service || service.status === 'deleted') throw noService();
  return service;
}

async function requireResumable(tx: Tx, service: ServiceRow): Promise<void> {
  const facts = { resource: quotaResource, limit: null, used: null, statusReason: service.statusReason };
  switch (service.statusReason) {
    case 'trial_expired': throw new AppError('payment_required', 'The trial has ended. Choose a paid plan, and the service is resumed.',
      { ...facts, upgradeTo: await planAllowing(tx, 'postgres.storage_bytes', Math.max(service.usedBytes ?? 0, planLimits.trial.storageBytes + 1)) });
    case 'payment_overdue': throw new AppError('payment_required', 'An invoice of this organisation is overdue. Pay it, and the service is resumed.', { ...facts, upgradeTo: null });
    case 'admin': throw new AppError('service_suspended', 'The operator of this installation has suspended the service. Ask them to resume it.', { statusReason: 'admin' });
    default: return;
  }
}

async function requireFit(tx: Tx, { usedBytes }: ServiceRow, plan: Plan): Promise<void> {
  const { storageBytes } = planLimits[plan];
  if (usedBytes === null || usedBytes <= storageBytes) return;
  const resource = 'postgres.storage_bytes';
  const conflicts = [{ resource, used: usedBytes, limit: storageBytes }];
  throw new AppError('plan_limit_reached', `The service holds ${usedBytes} bytes and the ${plan} plan allows ${storageBytes}. Choose a larger plan, or delete data first.`,
    { resource, limit: storageBytes, used: usedBytes, upgradeTo: await planAllowing(tx, resource, usedBytes), conflicts });
}

import { systemCause, type Cause } from '../core/caller';
import type { Tx } from '../db/transaction';
import { recordNotice } from './notices';
import { auditStatus } from './services';
import type { SuspendedReason } from './state';
import { liveServiceIds, lockAnyService, setResumed, setSuspended } from './store/services';

/** The service sends nothing until it is resumed: sends are refused, attempts wait. False when it was not active. */
export async function suspendService(tx: Tx, serviceId: string, reason: SuspendedReason, cause: Cause): Promise<boolean> {
  const service = await lockAnyService(tx, serviceId);
  if (!service || !await setSuspended(tx, service.id, reason)) return false;
  await recordNotice(tx, { mailServiceId: service.id, type: 'service.suspended', status: 'suspended', facts: { reason } });
  auditStatus(tx, service, cause, { status: 'suspended', reason });
  return true;
}

/** suspended for this reason (null: any) → active; false when it was not. */
export async function resumeService(tx: Tx, serviceId: string, reason: SuspendedReason | null, cause: Cause): Promise<boolean> {
  const service = await lockAnyService(tx, serviceId);
  if (!service || !await setResumed(tx, service.id, reason)) return false;
  await recordNotice(tx, { mailServiceId: service.id, type: 'service.resumed', status: 'active', facts: { reason: service.suspendedReason } });
  auditStatus(tx, service, cause, { status: 'active' });
  return true;
}

/** For billing: no mail of the organisation goes out while its account is suspended. What is suspended for another reason stays so. */
export async function suspendForPayment(tx: Tx, orgId: string): Promise<void> {
  for (const id of await liveServiceIds(tx, { orgId })) await suspendService(tx, id, 'payment', systemCause('suspendForPayment'));
}

/** For billing: the account is paid. */
export async function resumeFromPayment(tx: Tx, orgId: string): Promise<void> {
  for (const id of await liveServiceIds(tx, { orgId })) await resumeService(tx, id, 'payment', systemCause('resumeFromPayment'));
}

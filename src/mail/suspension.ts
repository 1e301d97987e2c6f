import { systemCause, type Cause } from '../core/caller';
import type { Tx } from '../db/transaction';
import { recordNotice } from './notices';
import { auditService, auditStatus } from './services';
import type { SuspendedReason } from './state';
import { addSuspension, liftSuspension, liveServiceIds, lockAnyService, setSuspended } from './store/services';

/**
 * The service sends nothing until it is resumed: sends are refused, attempts wait. One that is suspended for another reason
 * is from now on for both. False when it was for this one, or is going.
 */
export async function suspendService(tx: Tx, serviceId: string, reason: SuspendedReason, cause: Cause): Promise<boolean> {
  const service = await lockAnyService(tx, serviceId);
  if (!service || !await addSuspension(tx, service.id, reason)) return false;
  if (!await setSuspended(tx, service.id, reason)) {
    auditService(tx, service, cause, [{ field: 'suspendedFor', from: null, to: reason }]);
    return true;
  }
  await recordNotice(tx, { mailServiceId: service.id, type: 'service.suspended', status: 'suspended', facts: { reason } });
  auditStatus(tx, service, cause, { status: 'suspended', reason });
  return true;
}

/** What holds the service back for this reason (null: for any) is lifted; true when it is active by that. */
export async function resumeService(tx: Tx, serviceId: string, reason: SuspendedReason | null, cause: Cause): Promise<boolean> {
  const service = await lockAnyService(tx, serviceId);
  const status = service && await liftSuspension(tx, service.id, reason);
  if (!service || status === null) return false;
  if (status === 'suspended') {
    auditService(tx, service, cause, [{ field: 'suspendedFor', from: reason, to: null }]);
    return false;
  }
  await recordNotice(tx, { mailServiceId: service.id, type: 'service.resumed', status: 'active', facts: { reason: service.suspendedReason } });
  auditStatus(tx, service, cause, { status: 'active' });
  return true;
}

/** For billing: no mail of the organisation goes out while its account is suspended. */
export async function suspendForPayment(tx: Tx, orgId: string): Promise<void> {
  for (const id of await liveServiceIds(tx, { orgId })) await suspendService(tx, id, 'payment', systemCause('suspendForPayment'));
}

/** For billing: the account is paid. What is suspended for another reason too stays so. */
export async function resumeFromPayment(tx: Tx, orgId: string): Promise<void> {
  for (const id of await liveServiceIds(tx, { orgId })) await resumeService(tx, id, 'payment', systemCause('resumeFromPayment'));
}

/**
 * What others ask of mail, inside their own transactions where they take `tx`: billing changes plans, suspends and resumes;
 * identity deletes projects; activities carry out what was accepted.
 */
export { resumeByOperator, suspendByOperator } from './operator';
export { requestDeletion, cancelServiceMessages, markServiceRemoved, purgeServiceContent, removeServiceDomains, type DeletionDeps } from './service-deletion';
export { changePlan } from './services';
export { countServices } from './store/services';
export { resumeFromPayment, resumeService, suspendForPayment, suspendService } from './suspension';
export { createAcceptWriter } from './accept-writer';
export { attemptMessages, type DeliveryDeps } from './delivery/attempt-messages';
export { createRefusalAlert } from './delivery/refusals';
export { createResultWriter } from './delivery/results';
export { createSigningKeys } from './delivery/signing-keys';
export { createPendingMail } from './pending';
export { eventReconcileRule, messageReconcileRule } from './message-reconcile';
export { rematchEvents } from './provider-events';
export { evaluateReputation, type ReputationRules } from './reputation';
export { purgeExpiredMail } from './retention';
export { noteQuota } from './quota';
export { startMailDeliveryRelay, type StartBatch } from './relay';
export type { SendDeps } from './send';
export { createMailStarts, type Dispatched, type StartDelivery } from './starts';
export { ensureDomainChecked, recheckDue, type VerificationDeps } from './verification';

/**
 * What others ask of mail, inside their own transactions where they take `tx`: billing changes plans, suspends and resumes;
 * identity deletes projects; activities carry out what was accepted.
 */
export { requestDeletion, cancelServiceMessages, markServiceRemoved, purgeServiceContent, removeServiceDomains, type DeletionDeps } from './service-deletion';
export { changePlan } from './services';
export { countServices } from './store/services';
export { resumeFromPayment, resumeService, suspendForPayment, suspendService } from './suspension';
export { refreshCeiling } from './usage';
export { ensureDomainChecked, recheckDue, type VerificationDeps } from './verification';

import { certificateOperations } from './certificates';
import { eventOperations } from './events';
import { inspectionOperations } from './inspection';
import { policyOperations } from './policy';

export type { GatewayDeps } from '../deps';

/** Operations of the security gateway; http/routes.ts adds them to the one list. */
export const gatewayOperations = [...policyOperations, ...eventOperations, ...inspectionOperations, ...certificateOperations];

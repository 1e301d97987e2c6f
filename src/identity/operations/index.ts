import { authOperations } from './auth';
import { memberOperations } from './members';
import { orgOperations } from './orgs';

/** Every route of identity. */
export const identityOperations = [...authOperations, ...orgOperations, ...memberOperations];
export type { IdentityDeps } from '../deps';

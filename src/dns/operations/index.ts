import { batchOperations } from './batch';
import { recordOperations } from './records';
import { scanOperations } from './scan';
import { verificationOperations } from './verification';
import { versionOperations } from './versions';
import { zoneOperations } from './zones';

export type { DnsDeps } from '../deps';

/** Operations of DNS zones and records; http/routes.ts adds them to the one list. */
export const dnsOperations = [...zoneOperations, ...recordOperations, ...batchOperations, ...versionOperations, ...verificationOperations, ...scanOperations];

import type { Operation } from '../../http/operation';
import type { MailDeps } from '../deps';

export type { MailDeps } from '../deps';

/** Operations of mail; http/routes.ts adds them to the one list. One file per noun beside this one. */
export const mailOperations: readonly Operation<MailDeps>[] = [];

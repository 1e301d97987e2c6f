import { domainOperations } from './domains';
import { keyOperations } from './keys';
import { messageOperations } from './messages';
import { providerEventOperations } from './provider-events';
import { sendOperations } from './send';
import { serviceOperations } from './services';
import { suppressionOperations } from './suppressions';
import { webhookOperations } from './webhooks';

export type { MailDeps } from '../deps';

/** Operations of mail; http/routes.ts adds them to the one list. One file per noun beside this one. */
export const mailOperations = [
  ...sendOperations, ...messageOperations, ...providerEventOperations, ...serviceOperations, ...domainOperations, ...keyOperations, ...suppressionOperations, ...webhookOperations,
];

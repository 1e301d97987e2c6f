import { proxyActivities } from '@temporalio/workflow';
import type { MailActivities } from '../../activities/mail';
import { rechecking } from '../policies';

const { recheckDueDomains } = proxyActivities<MailActivities>(rechecking);

/** Verified and degraded sender domains that are due have been checked again. */
export async function recheckMailDomains(): Promise<{ checked: number }> {
  return recheckDueDomains();
}

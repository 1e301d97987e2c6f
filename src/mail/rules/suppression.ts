import { enhancedCodeOf } from './replies';

/** The address does not exist, in the words of RFC 3463 and its registry. */
const gone = ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10'];
const disabled = '5.2.1';
const goneSubTypes = ['general', 'noemail'];

/** How long an address stays suppressed whose mailbox was disabled twice within 72 hours. */
export const disabledSuppressionDays = 30;
export const disabledWindowHours = 72;

export type BounceFact = {
  enhancedCode?: string | null | undefined;
  /** Set for a provider's word; our own attempts and delivery status notifications speak SMTP. */
  provider?: { permanent: boolean; subType?: string | null | undefined } | undefined;
};

/** Refused for what we are, say or send, or for want of room: the address is good. */
const never = /^\d\.7\.\d+$|^5\.3\.4$|^5\.2\.2$|^5\.6\.\d+$/;

/**
 * Whether a bounce suppresses its address for this service: at once and for good, when it is the second of its kind
 * within 72 hours (for 30 days), or not (contract mail.md §4.5). Never for policy, quotas, content or a bare SMTP code.
 */
export function suppressedBy({ enhancedCode, provider }: BounceFact): 'always' | 'second' | 'never' {
  const enhanced = enhancedCodeOf(enhancedCode) ?? '';
  if ((provider && !provider.permanent) || never.test(enhanced)) return 'never';
  if (gone.includes(enhanced)) return 'always';
  if (enhanced === disabled) return 'second';
  return goneSubTypes.includes((provider?.subType ?? '').toLowerCase()) ? 'always' : 'never';
}

import { canonicalDomain, isAtOrBelow, type DomainRules } from '../../dns/rules/domains';
import { freeMailDomains } from './free-mail';

export type SenderDomainRules = DomainRules & {
  /** MAIL_BOUNCE_DOMAIN: it and the names below are ours. */
  bounceDomain: string;
};

/** A sender domain in its ASCII form, or why it cannot be one (contract mail.md §4.2). */
export function canonicalSenderDomain(text: string, rules: SenderDomainRules): { domain: string } | { fault: string } {
  const parsed = canonicalDomain(text, rules);
  if (parsed.fault !== undefined) return { fault: parsed.fault };
  const { domain } = parsed.value;
  if (freeMailDomains.has(domain)) return { fault: 'is a mail provider whose addresses anybody gets; use a domain of your own' };
  return isAtOrBelow(domain, rules.bounceDomain) ? { fault: 'belongs to this platform' } : { domain };
}

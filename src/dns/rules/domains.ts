import { getDomain, parse } from 'tldts';
import { toASCII, toUnicode } from 'tr46';
import type { Parsed } from './rrset';

/** What the installation adds to the rules of domains (contract dns.md §4.1). */
export type DomainRules = {
  /** DNS_ALLOW_TEST_TLDS: names below `test` and `example` are taken. */
  allowTestTlds: boolean;
  /** Suffixes of the platform itself, lower case: they and all names below are refused. */
  platformSuffixes: readonly string[];
};

/** `domain` in its ASCII form, `unicodeDomain` for people. */
export type Domain = { domain: string; unicodeDomain: string; warnings: readonly { code: 'mixed_script'; message: string }[] };

/** UTS #46 non-transitional; names of records may hold `_` and `*`, so STD3 is left to who needs it. */
export const uts46 = { checkBidi: true, checkJoiners: true, transitionalProcessing: false } as const;
const strict = { ...uts46, checkHyphens: true, useSTD3ASCIIRules: true, verifyDNSLength: true } as const;

/** RFC 6761, 7686, 8375, 9476, 9564 and ICANN's `internal`. */
const specialUse = ['localhost', 'local', 'invalid', 'onion', 'alt', 'internal', 'arpa'];
const testing = ['test', 'example'];

/** The canonical domain of a zone or mail domain, or why it cannot be one (contract dns.md §4.1). */
export function canonicalDomain(text: string, rules: DomainRules): Parsed<Domain> {
  const bare = text.trim().replace(/[.。．｡]$/u, '');
  const domain = toASCII(bare, strict);
  if (domain === null) return { fault: syntaxFault(bare) };
  const labels = domain.split('.');
  if (labels.length < 2) return { fault: 'must have at least two labels, like example.com' };
  if (/^\d+$/.test(labels.at(-1) ?? '')) return { fault: 'must be a domain name, not an address' };
  const refused = refusal(domain, rules);
  if (refused) return { fault: refused };
  const unicodeDomain = toUnicode(domain, strict).domain;
  const mixed = unicodeDomain.split('.').filter(isMixedScript);
  return { value: { domain, unicodeDomain, warnings: mixed.map((label) => ({ code: 'mixed_script', message: `"${label}" mixes scripts that look alike; check that it is the name you mean.` })) } };
}

/** Name under a public suffix that somebody registers: what claims are locked and scans counted by. The domain itself when there is none. */
export function registrableDomain(domain: string): string {
  return getDomain(domain, { allowPrivateDomains: true, validateHostname: false }) ?? domain;
}

/** Whether `name` is `suffix` or stands below it; both canonical. */
export function isAtOrBelow(name: string, suffix: string): boolean {
  return name === suffix || name.endsWith(`.${suffix}`);
}

function refusal(domain: string, rules: DomainRules): string | null {
  const reserved = rules.allowTestTlds ? specialUse : [...specialUse, ...testing];
  const special = reserved.find((suffix) => isAtOrBelow(domain, suffix));
  if (special) return `names under .${special} cannot be hosted`;
  if (rules.platformSuffixes.some((suffix) => isAtOrBelow(domain, suffix))) return 'belongs to this platform';
  const { publicSuffix, isIcann, isPrivate } = parse(domain, { allowPrivateDomains: true, validateHostname: false });
  return publicSuffix === domain && (isIcann || isPrivate) ? 'is a public suffix; give the domain registered under it' : null;
}

function syntaxFault(text: string): string {
  if (text === '') return 'must not be empty';
  if (/[:/@\s]/.test(text)) return 'must be a bare domain name, without scheme, port, path or spaces';
  if (/[_*]/.test(text)) return 'must not hold "_" or "*"';
  return 'must be a domain name: labels of letters, digits and inner hyphens, 1 to 63 octets each, 253 in all';
}

const scripts = ['Latin', 'Cyrillic', 'Greek', 'Armenian', 'Georgian', 'Hebrew', 'Arabic', 'Devanagari', 'Thai', 'Cherokee', 'Han', 'Hiragana', 'Katakana', 'Bopomofo', 'Hangul'];
const scriptTests = scripts.map((name) => ({ name, test: new RegExp(`\\p{Script=${name}}`, 'u') }));
/** Scripts that are written together (UTS #39 §5.2, highly restrictive). */
const together = [['Latin', 'Han', 'Hiragana', 'Katakana'], ['Latin', 'Han', 'Bopomofo'], ['Latin', 'Han', 'Hangul']];

function isMixedScript(label: string): boolean {
  const found = scriptTests.filter(({ test }) => test.test(label)).map(({ name }) => name);
  return found.length > 1 && !together.some((set) => found.every((name) => set.includes(name)));
}

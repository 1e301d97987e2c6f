import { toASCII } from 'tr46';
import { isAtOrBelow, uts46 } from './domains';
import type { Parsed } from './rrset';

const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const hostLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const namesMax = 253;

/**
 * Name of a record relative to its zone, `@` for the apex (contract dns.md §4.3). Taken: `@`, nothing, a relative name,
 * or a full name inside the zone; with a final dot it must be inside.
 */
export function canonicalRecordName(text: string, domain: string): Parsed<string> {
  if (text === '' || text === '@') return { value: '@' };
  if (/[\\\s]/.test(text)) return { fault: 'must not hold spaces or escapes' };
  const full = /[.。．｡]$/u.test(text);
  const name = asciiForm(full ? text.slice(0, -1) : text);
  if (name === null) return { fault: 'must be labels of letters, digits, "-" and "_", separated by dots' };
  const inside = isAtOrBelow(name, domain);
  if (full && !inside) return { fault: `must be inside ${domain}` };
  if (name === domain) return { value: '@' };
  const relative = inside ? name.slice(0, -domain.length - 1) : name;
  const fault = nameFault(relative, domain);
  return fault ? { fault } : { value: relative };
}

/** UTS #46; what is in its ASCII form already, as nearly every name is, needs no mapping. */
function asciiForm(text: string): string | null {
  return /^[a-z0-9_.*-]*$/.test(text) && !text.includes('xn--') ? text : toASCII(text, uts46);
}

/** Absolute name of a record, lower case, without final dot. */
export function fqdnOf(name: string, domain: string): string {
  return name === '@' ? domain : `${name}.${domain}`;
}

/** Inverse of `fqdnOf`; null for a name outside the zone. */
export function relativeName(fqdn: string, domain: string): string | null {
  if (fqdn === domain) return '@';
  return isAtOrBelow(fqdn, domain) ? fqdn.slice(0, -domain.length - 1) : null;
}

/** Names strictly between a relative name and the apex, nearest first: `a.b.c` gives `b.c`, `c`. */
export function namesAbove(name: string): string[] {
  const labels = name === '@' ? [] : name.split('.');
  return labels.slice(1).map((_, i) => labels.slice(i + 1).join('.'));
}

/** Whether a label of the name begins with `_`: such names carry data about a service and are never proxied. */
export function hasUnderscoreLabel(name: string): boolean {
  return name.startsWith('_') || name.includes('._');
}

/** Liberties a record type leaves to the host it names. */
export type HostRules = { underscores: boolean; wildcard: boolean };

/** An absolute host name, lower case, without final dot; `@` is the apex (contract dns.md §4.3). */
export function canonicalHost(text: string, domain: string, rules: HostRules): Parsed<string> {
  if (text === '@') return { value: domain };
  if (/[\s\\/:@[\]]/.test(text)) return { fault: 'must be a host name, without address, scheme, port, path or spaces' };
  const name = asciiForm(text.replace(/[.。．｡]$/u, ''));
  const labels = name?.split('.') ?? [];
  if (name === null || labels.some((part, i) => !isHostLabel(part, i, rules)) || name.length > namesMax) {
    return { fault: rules.underscores ? 'must be a host name' : 'must be a host name of letters, digits and inner hyphens' };
  }
  if (labels.length < 2) return { fault: `must be a full name with at least two labels, like ${labels[0] === '*' ? 'www' : (labels[0] ?? 'www')}.${domain}` };
  if (/^\d+$/.test(labels.at(-1) ?? '')) return { fault: 'must be a host name, not an address' };
  return { value: name };
}

function isHostLabel(part: string, index: number, rules: HostRules): boolean {
  if (part === '*') return rules.wildcard && index === 0;
  return (rules.underscores ? label : hostLabel).test(part);
}

function nameFault(relative: string, domain: string): string | null {
  const [first, ...rest] = relative.split('.');
  if (rest.includes('*')) return '"*" stands only as the whole first label';
  if (first !== '*' && first?.includes('*')) return '"*" stands only as the whole first label';
  if ([...(first === '*' ? [] : [first ?? '']), ...rest].some((part) => !label.test(part))) {
    return 'must be labels of 1 to 63 letters, digits, "-" and "_", with no "-" at an end';
  }
  return fqdnOf(relative, domain).length > namesMax ? `must be at most ${namesMax} octets with the zone's name` : null;
}

/** Whether a relative name is `above` or stands below it. */
export function isWithinName(name: string, above: string): boolean {
  return above === '@' || name === above || name.endsWith(`.${above}`);
}

import { formatIpv4, formatIpv6, isIpv4Mapped, parseIpv4, parseIpv6 } from './addresses';
import { canonicalCaa } from './caa';
import { canonicalHost, fqdnOf, hasUnderscoreLabel } from './names';
import type { Parsed, RecordType } from './rrset';
import { canonicalText, quoteStrings } from './text-strings';

export const ttlDefault = 300;
export const ttlMin = 60;
export const ttlMax = 86_400;
const priorityDefault = 10;

/** A record as given: `name` canonical already, `priority` null when absent. */
export type Draft = { type: RecordType; name: string; value: string; priority: number | null; proxied: boolean };
export type RecordFault = { path: 'name' | 'value' | 'priority' | 'proxied'; message: string };

/** Canonical value and priority of a record, or every fault that its own fields and the zone's name show (contract dns.md §4.3). */
export function canonicalRecord(draft: Draft, domain: string): { value: string; priority: number | null; faults?: never } | { faults: RecordFault[] } {
  const parsed = canonicalValue(draft.type, draft.value, { domain, name: draft.name });
  const priority = draft.type === 'MX' ? (draft.priority ?? priorityDefault) : null;
  const faults: RecordFault[] = [];
  if (parsed.fault !== undefined) faults.push({ path: 'value', message: parsed.fault });
  faults.push(...priorityFaults(draft, parsed.value), ...placeFaults(draft));
  if (draft.proxied && parsed.value !== undefined && draft.type === 'AAAA' && isIpv4Mapped(parsed.value)) faults.push({ path: 'value', message: 'an IPv4-mapped address cannot be proxied' });
  return faults.length > 0 || parsed.value === undefined ? { faults } : { value: parsed.value, priority };
}

/** Canonical form of a value (contract dns.md §4.3); priority apart. */
export function canonicalValue(type: RecordType, value: string, at: { domain: string; name: string }): Parsed<string> {
  switch (type) {
    case 'A': return ipv4(value);
    case 'AAAA': return ipv6(value);
    case 'CNAME': return cname(value, at);
    case 'MX': return mailHost(value, at.domain);
    case 'TXT': return canonicalText(value);
    case 'NS': return canonicalHost(value, at.domain, { underscores: false, wildcard: false });
    case 'CAA': return canonicalCaa(value);
  }
}

/** A stored value in a form that `canonicalValue` reads as the same: a TXT that looks like quoted strings must not be unquoted twice. */
export function valueAsGiven({ type, value }: { type: RecordType; value: string }): string {
  return type === 'TXT' ? quoteStrings(value) : value;
}

/** Whether records of this type and name may be proxied at all; that the name is not glue is for who knows the zone. */
export function isProxiableName(type: RecordType, name: string): boolean {
  return (type === 'A' || type === 'AAAA' || type === 'CNAME') && !hasUnderscoreLabel(name);
}

function ipv4(value: string): Parsed<string> {
  const octets = parseIpv4(value);
  if (!octets) return { fault: 'must be an IPv4 address: four numbers from 0 to 255 without leading zeros' };
  const [first = 0] = octets;
  const unusable = first === 0 || (first >= 224 && first <= 239) || octets.every((octet) => octet === 255);
  return unusable ? { fault: 'must be an address of one host' } : { value: formatIpv4(octets) };
}

function ipv6(value: string): Parsed<string> {
  const octets = parseIpv6(value);
  if (!octets) return { fault: 'must be an IPv6 address without brackets and zone' };
  const [first = 0, second = 0] = octets;
  const linkLocal = first === 0xfe && (second & 0xc0) === 0x80;
  const unusable = linkLocal || first === 0xff || octets.every((octet) => octet === 0);
  return unusable ? { fault: 'must be an address of one host that is not link-local' } : { value: formatIpv6(octets) };
}

function cname(value: string, { domain, name }: { domain: string; name: string }): Parsed<string> {
  const host = canonicalHost(value, domain, { underscores: true, wildcard: true });
  return host.value === fqdnOf(name, domain) ? { fault: 'must not be the name of the record itself' } : host;
}

/** RFC 7505: `.` says that the domain takes no mail. */
function mailHost(value: string, domain: string): Parsed<string> {
  if (value === '.') return { value };
  if (/^\s*\d+\s+\S/.test(value)) return { fault: 'must be the host alone; give the leading number as priority' };
  return canonicalHost(value, domain, { underscores: false, wildcard: false });
}

function priorityFaults({ type, priority }: Draft, value: string | undefined): RecordFault[] {
  if (type !== 'MX') return priority === null ? [] : [{ path: 'priority', message: 'only MX records have a priority' }];
  const given = priority ?? priorityDefault;
  if (!Number.isInteger(given) || given < 0 || given > 65_535) return [{ path: 'priority', message: 'must be a whole number from 0 to 65535' }];
  return value === '.' && given !== 0 ? [{ path: 'priority', message: 'must be 0 for the null MX "."' }] : [];
}

function placeFaults({ type, name, proxied }: Draft): RecordFault[] {
  const faults: RecordFault[] = [];
  if (type === 'NS' && name === '@') faults.push({ path: 'name', message: "the zone's own name servers are set by the platform" });
  if (type === 'NS' && name.startsWith('*')) faults.push({ path: 'name', message: 'a wildcard cannot be delegated' });
  if (proxied && !isProxiableName(type, name)) faults.push({ path: 'proxied', message: 'only A, AAAA and CNAME records without "_" in front of a label can be proxied' });
  return faults;
}

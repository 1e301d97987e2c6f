import { toASCII } from 'tr46';
import type { Mailbox } from '../ports';

export type ParsedMailbox = { value: Mailbox } | { fault: string };

const octetsMax = 320;
const nameMax = 128;
/** RFC 5322 §3.2.3 dot-atom, ASCII. */
const localPart = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** No C0, C1, line or paragraph separator: nothing of a header field may begin another (contract mail.md §4.1). */
const control = /[\p{Cc}\u2028\u2029]/u;

/** Whether the text may stand in a header field. */
export function isHeaderText(text: string): boolean {
  return !control.test(text);
}

/**
 * `local@domain` or `Name <local@domain>`, parsed once: what is stored is never parsed again. The domain becomes its
 * A-label in lower case. No quoted local part, comment, group or address literal.
 */
export function parseMailbox(text: string): ParsedMailbox {
  if (!isHeaderText(text)) return { fault: 'must not hold control characters or line breaks' };
  if (Buffer.byteLength(text) > octetsMax) return { fault: `must be at most ${octetsMax} octets` };
  const trimmed = text.trim();
  const angled = /^(.*)<([^<>]*)>$/su.exec(trimmed);
  const name = angled ? displayNameOf((angled[1] ?? '').trim()) : '';
  if (name === null) return { fault: 'the name must not hold "(", ")", "<", ">" or a single quotation mark ("), unless it is quoted whole' };
  if ([...name].length > nameMax) return { fault: `the name must be at most ${nameMax} characters` };
  const address = parseAddress(angled ? angled[2] ?? '' : trimmed);
  return 'fault' in address ? address : { value: { name, address: address.value } };
}

/** A bare `local@domain`, its domain canonical. */
export function parseAddress(text: string): { value: string } | { fault: string } {
  const at = text.lastIndexOf('@');
  if (at < 1) return { fault: 'must be an address like ann@example.com or Ann <ann@example.com>' };
  const local = text.slice(0, at);
  if (local.length > 64 || !localPart.test(local)) return { fault: 'the part before the @ must be 1 to 64 letters, digits and !#$%&\'*+/=?^_`{|}~- with single inner dots' };
  const domain = canonicalMailDomain(text.slice(at + 1));
  if (domain === null) return { fault: 'the part after the @ must be a domain name with at least two labels' };
  const value = `${local}@${domain}`;
  return Buffer.byteLength(value) > octetsMax ? { fault: `must be at most ${octetsMax} octets` } : { value };
}

/** A-label, lower case, at least two labels, at most 253 octets; null for anything else, address literals among it. */
function canonicalMailDomain(text: string): string | null {
  if (/[\s.。．｡]$/u.test(text) || /[\s\\]/u.test(text)) return null;
  const domain = toASCII(text, { checkBidi: true, checkJoiners: true, checkHyphens: true, useSTD3ASCIIRules: true, transitionalProcessing: false, verifyDNSLength: true });
  const labels = domain?.split('.') ?? [];
  if (domain === null || domain.length > 253 || labels.length < 2 || !labels.every((part) => label.test(part))) return null;
  return /^\d+$/.test(labels.at(-1) ?? '') ? null : domain;
}

/** Null for what would need a parser of comments: it is refused. */
function displayNameOf(text: string): string | null {
  const quoted = /^"((?:[^"\\]|\\.)*)"$/su.exec(text);
  if (quoted) return (quoted[1] ?? '').replace(/\\(.)/gsu, '$1').trim();
  return /[()<>"]/.test(text) ? null : text;
}

/** As it was given: the name in quotation marks where it could be misread without. */
export function formatMailbox({ name, address }: Mailbox): string {
  if (name === '') return address;
  return `${/[()<>@,;:\\"[\]]/.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name} <${address}>`;
}

/** What makes two addresses the same: all in lower case (contract mail.md §4.1). */
export function addressKey(address: string): string {
  return address.toLowerCase();
}

export function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1);
}

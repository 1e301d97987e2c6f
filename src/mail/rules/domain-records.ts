import { randomBytes } from 'node:crypto';
import type { RecordPurpose, RecordStatus } from '../state';

/** What a customer puts into DNS for a sender domain (contract mail.md §1), and how what is found there is read. */

export type DomainRecord = { purpose: RecordPurpose; selector: string | null; required: boolean; type: 'TXT' | 'CNAME'; name: string; value: string };
/** `next` waits to be seen, `former` signed until lately. */
export type SigningKey = { selector: string; state: 'current' | 'next' | 'former'; publicKey: string };

export const recordTtl = 300;
const foundMax = 5;
const foundLengthMax = 512;
const base32 = 'abcdefghijklmnopqrstuvwxyz234567';

export function randomBase32(length: number): string {
  return Array.from(randomBytes(length), (byte) => base32.charAt(byte & 31)).join('');
}

/** `hf` and 6 random base32. */
export function newSelector(): string {
  return `hf${randomBase32(6)}`;
}

/** Every record of a domain, in the order they are shown. */
export function recordsOf(domain: { domain: string; token: string; returnPath: string }, keys: readonly SigningKey[], bounceDomain: string): DomainRecord[] {
  const order = ['current', 'next', 'former'] as const;
  const signing = keys.toSorted((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
  return [
    { purpose: 'ownership', selector: null, required: true, type: 'TXT', name: `_holdfast.${domain.domain}`, value: `holdfast-verify=${domain.token}` },
    ...signing.map(({ selector, state, publicKey }): DomainRecord => ({
      purpose: 'dkim', selector, required: state !== 'former', type: 'TXT', name: `${selector}._domainkey.${domain.domain}`, value: `v=DKIM1; k=rsa; p=${publicKey}`,
    })),
    { purpose: 'return_path', selector: null, required: false, type: 'CNAME', name: `${domain.returnPath}.${domain.domain}`, value: bounceDomain },
    { purpose: 'dmarc', selector: null, required: false, type: 'TXT', name: `_dmarc.${domain.domain}`, value: 'v=DMARC1; p=none' },
  ];
}

/** Of what DNS says for the record's name and type. */
export function statusOfFound(record: Pick<DomainRecord, 'purpose' | 'value'>, found: readonly string[]): Extract<RecordStatus, 'ok' | 'missing' | 'mismatch'> {
  if (found.length === 0) return 'missing';
  return isThere(record, found) ? 'ok' : 'mismatch';
}

function isThere({ purpose, value }: Pick<DomainRecord, 'purpose' | 'value'>, found: readonly string[]): boolean {
  switch (purpose) {
    case 'ownership': return found.some((text) => text.trim() === value);
    case 'dkim': return found.some((text) => carriesKey(text, value));
    case 'return_path': return found.some((host) => host.toLowerCase().replace(/\.$/, '') === value);
    case 'dmarc': return dmarcPolicyOf(found) !== null;
  }
}

/** The same key in another spelling of the record is the same (RFC 6376 §3.6.1): tags in any order, white space in the key. */
function carriesKey(text: string, wanted: string): boolean {
  const tags = tagsOf(text);
  const key = tags.get('p')?.replace(/\s/g, '');
  if (!key || (tags.get('v') ?? 'DKIM1') !== 'DKIM1' || (tags.get('k') ?? 'rsa') !== 'rsa') return false;
  return Buffer.from(key, 'base64').equals(Buffer.from(tagsOf(wanted).get('p') ?? '', 'base64'));
}

/** The policy of the one DMARC record; null when there is none, or more than one (RFC 7489 §6.6.3). */
export function dmarcPolicyOf(found: readonly string[]): string | null {
  const records = found.filter((text) => /^v\s*=\s*DMARC1\s*(;|$)/.test(text));
  const policy = records.length === 1 ? tagsOf(records[0] ?? '').get('p')?.toLowerCase() : undefined;
  return policy === 'none' || policy === 'quarantine' || policy === 'reject' ? policy : null;
}

function tagsOf(text: string): Map<string, string> {
  const tags = new Map<string, string>();
  for (const part of text.split(';')) {
    const [, name, value] = /^\s*([a-zA-Z][a-zA-Z0-9_]*)\s*=\s*(.*?)\s*$/s.exec(part) ?? [];
    if (name !== undefined && value !== undefined && !tags.has(name)) tags.set(name, value);
  }
  return tags;
}

/** What is kept and shown of what was found. */
export function shownFound(found: readonly string[]): string[] {
  return found.slice(0, foundMax).map((text) => text.replaceAll('\0', '\uFFFD').toWellFormed().slice(0, foundLengthMax).toWellFormed());
}

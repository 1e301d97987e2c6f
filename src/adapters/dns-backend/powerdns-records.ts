import { z } from 'zod';
import type { FoundRRset } from '../../dns/rules/drift';
import { caaText, readCaa } from '../../dns/rules/caa';
import { byText, recordTypes, type RRset, type RrType } from '../../dns/rules/rrset';
import { canonicalValue } from '../../dns/rules/values';
import { quoteStrings, unquoteStrings } from '../../dns/rules/text-strings';

/** An RRset as PowerDNS writes it: names with a final dot, TXT in quoted pieces, MX and CAA in one line. */
export const powerdnsSet = z.object({
  name: z.string(), type: z.string(), ttl: z.number().default(0), records: z.array(z.object({ content: z.string(), disabled: z.boolean().default(false) })),
});
type PowerdnsSet = z.infer<typeof powerdnsSet>;

/** The RRset is exactly this afterwards. */
export function replacing({ name, type, ttl, values }: RRset) {
  return { name: `${name}.`, type, ttl, changetype: 'REPLACE', records: values.map((value) => ({ content: contentOf(type, value), disabled: false })) };
}

/** The RRset is gone afterwards. */
export function removing({ name, type }: { name: string; type: string }) {
  return { name: `${name}.`, type, ttl: 0, changetype: 'REPLACE', records: [] };
}

/** RRsets in canonical form, sorted. What is disabled is not answered, and left out unless asked for; types we never write stand as they are. */
export function rrsetsFrom(sets: readonly PowerdnsSet[], { disabled: all = false } = {}): FoundRRset[] {
  const found = sets.map(({ name, type, ttl, records }): FoundRRset => {
    const known = rrTypes.find((one) => one === type);
    const answered = records.filter(({ disabled }) => all || !disabled);
    return { name: withoutDot(name).toLowerCase(), type, ttl, values: answered.map(({ content }) => (known ? valueOf(known, content) : content)).sort(byText) };
  });
  return found.filter(({ values }) => values.length > 0).sort((a, b) => byText(a.name, b.name) || byText(a.type, b.type));
}

const rrTypes: readonly RrType[] = [...recordTypes, 'SOA', 'DS'];

function contentOf(type: RrType, value: string): string {
  switch (type) {
    case 'A':
    case 'AAAA':
    case 'DS': return value;
    case 'CAA': return caaContent(value);
    case 'CNAME':
    case 'NS': return `${value}.`;
    case 'TXT': return quoteStrings(value);
    case 'MX': return value.endsWith('.') ? value : `${value}.`;
    case 'SOA': return value.split(' ').map((part, i) => (i < 2 ? `${withoutDot(part)}.` : part)).join(' ');
  }
}

function valueOf(type: RrType, content: string): string {
  switch (type) {
    case 'AAAA': return canonicalValue(type, content, { domain: 'invalid', name: '@' }).value ?? content;
    case 'CAA': return caaValue(content);
    case 'TXT': return unquoteStrings(content) ?? content;
    case 'CNAME':
    case 'NS': return withoutDot(content).toLowerCase();
    case 'MX': return content.endsWith(' .') ? content : withoutDot(content).toLowerCase();
    case 'SOA': return content.split(' ').map((part, i) => (i < 2 ? withoutDot(part) : part)).join(' ');
    case 'A':
    case 'DS': return content;
  }
}

function caaContent(value: string): string {
  const caa = readCaa(value);
  return caa ? `${caa.flags} ${caa.tag} ${quoteStrings(caa.value)}` : value;
}

function caaValue(content: string): string {
  const [, flags, tag = '', quoted = ''] = /^(\d+) (\S+) (".*")$/s.exec(content) ?? [];
  const value = unquoteStrings(quoted);
  return flags === undefined || value === null ? content : caaText({ flags: Number(flags), tag, value });
}

function withoutDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

import { isStorable } from '../../core/fields';
import { canonicalRecordName } from './names';
import { canonicalOrigin, noOrigin } from './origins';
import type { PlanRules } from './plan';
import { recordTypes, type RecordType, type ZoneRecord } from './rrset';
import { unescapeText } from './text-strings';
import { canonicalRecord, ttlDefault, ttlMax, ttlMin } from './values';
import { ownLine, ownSettings, type ZoneFileSettings } from './zone-file';
import { readLines, type Token, type ZoneFileLine } from './zone-file-lines';

/** A record found in a zone file, canonical; with the line it began on, and whether the file says how it is proxied. */
export type ImportedRecord = Omit<ZoneRecord, 'id'> & { comment: string | null; hasSettings: boolean; line: number };
export type ZoneFileContent = { records: ImportedRecord[]; skipped: { line: number; reason: string }[] };

type State = { rules: PlanRules; origin: string; ttl: number | null; owner: string | null };
type Fields = { ttl: number | null; type: string; rdata: Token[] };

const ttlText = /^(?:\d+[smhdw]?)+$/i;
const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/**
 * Records of a zone file for this zone. What a zone here does not hold is skipped with the reason: its SOA and own NS, other
 * types and classes, names outside, values that are not valid. Ttls are brought into 60 to 86,400; a set has that of its
 * first record (RFC 2181 §5.2).
 */
export function readZoneFile(text: string, rules: PlanRules): ZoneFileContent {
  const content: ZoneFileContent = { records: [], skipped: [] };
  const state: State = { rules, origin: rules.domain, ttl: null, owner: null };
  const ttls = new Map<string, number>();
  const ours = text.replace(/^\uFEFF/, '').replaceAll(new RegExp(`^${ownLine}`, 'gm'), '');
  for (const line of readLines(ours)) {
    const read = line.fault ?? (line.owner?.startsWith('$') ? directive(line, state) : record(line, state));
    if (typeof read === 'string') content.skipped.push({ line: line.line, reason: read });
    else if (read) content.records.push({ ...read, ttl: setDefault(ttls, `${read.type} ${read.name}`, read.ttl) });
  }
  return content;
}

/** The value of the key, which becomes this one if there is none. */
function setDefault(map: Map<string, number>, key: string, value: number): number {
  const there = map.get(key);
  if (there === undefined) map.set(key, value);
  return there ?? value;
}

/** Null when taken; else why not. */
function directive({ owner, tokens }: ZoneFileLine, state: State): string | null {
  const [first] = tokens;
  switch (owner?.toUpperCase()) {
    case '$ORIGIN':
      state.origin = absolute(first?.text ?? '.', state.origin);
      return null;
    case '$TTL':
      if (!first || !ttlText.test(first.text)) return 'not a ttl';
      state.ttl = seconds(first.text);
      return null;
    default:
      return `${owner ?? ''} is not supported`;
  }
}

function record(line: ZoneFileLine, state: State): ImportedRecord | string {
  state.owner = line.owner === null ? state.owner : absolute(line.owner, state.origin);
  if (state.owner === null) return 'the first record has no name';
  const fields = fieldsOf(line.tokens);
  if (typeof fields === 'string') return fields;
  const name = canonicalRecordName(`${state.owner}.`, state.rules.domain);
  if (name.fault !== undefined) return `name ${name.fault}`;
  if (fields.type === 'SOA' || (fields.type === 'NS' && name.value === '@')) return `${fields.type} of the apex is set by the platform`;
  const type = recordTypes.find((known) => known === fields.type);
  if (!type) return `type ${fields.type} is not supported`;
  const { value, priority } = valueOf(type, fields.rdata, state.origin);
  const settings = settingsOf(line.comment);
  const proxied = settings.proxied ?? false;
  const canonical = canonicalRecord({ type, name: name.value, value, priority, proxied }, state.rules.domain);
  if (canonical.faults) return canonical.faults.map(({ path, message }) => `${path} ${message}`).join('; ');
  const origin = canonicalOrigin({ ...noOrigin, ...settings }, proxied, state.rules.platformPorts);
  if (origin.faults) return origin.faults.map(({ path, message }) => `${path} ${message}`).join('; ');
  const ttl = Math.min(ttlMax, Math.max(ttlMin, fields.ttl ?? state.ttl ?? ttlDefault));
  return { ...origin.origin, ...canonical, type, name: name.value, ttl, proxied, comment: settings.comment ?? null, hasSettings: settings.proxied !== undefined, line: line.line };
}

/** Ttl and class may stand in either order before the type. */
function fieldsOf(tokens: readonly Token[]): Fields | string {
  const fields: Fields = { ttl: null, type: '', rdata: [] };
  for (const [index, { text, quoted }] of tokens.entries()) {
    const word = text.toUpperCase();
    if (quoted) return 'a record without a type';
    if (word === 'IN') continue;
    if (['CH', 'HS', 'CS'].includes(word)) return `class ${word} is not supported`;
    if (!ttlText.test(text)) return { ...fields, type: word, rdata: tokens.slice(index + 1) };
    fields.ttl = seconds(text);
  }
  return 'a record without a type';
}

function valueOf(type: RecordType, rdata: readonly Token[], origin: string): { value: string; priority: number | null } {
  const [first, second] = rdata.map(({ text }) => text);
  switch (type) {
    case 'CNAME':
    case 'NS': return { value: hostOf(first, origin), priority: null };
    case 'MX': return { value: hostOf(second, origin), priority: /^\d{1,5}$/.test(first ?? '') ? Number(first) : NaN };
    case 'TXT': return { value: rdata.map(({ text }) => `"${text}"`).join(' '), priority: null };
    case 'CAA': return { value: caaValue(rdata), priority: null };
    case 'A':
    case 'AAAA': return { value: rdata.map(({ text }) => text).join(' '), priority: null };
  }
}

function caaValue([flags, tag, value]: readonly Token[]): string {
  const text = unescapeText(value?.text ?? '').toString('utf8').replace(/["\\]/g, '\\$&');
  return `${flags?.text ?? ''} ${tag?.text ?? ''} "${text}"`;
}

function hostOf(text: string | undefined, origin: string): string {
  return text === '.' ? '.' : absolute(text ?? '', origin);
}

/** Absolute form without final dot. */
function absolute(text: string, origin: string): string {
  if (text === '@') return origin;
  if (text.endsWith('.')) return text.slice(0, -1);
  return origin === '' ? text : `${text}.${origin}`;
}

function seconds(text: string): number {
  return [...text.toLowerCase().matchAll(/(\d+)([smhdw]?)/g)].reduce((sum, [, count, unit]) => sum + Number(count) * (unitSeconds[unit ?? ''] ?? 1), 0);
}

/** Settings written by `writeZoneFile`; anything else in a comment is a comment. */
function settingsOf(comment: string): ZoneFileSettings {
  const start = ` ${comment}`.startsWith(ownSettings) ? comment.slice(ownSettings.length - 1) : null;
  if (start === null) return {};
  try {
    const given: unknown = JSON.parse(start);
    return typeof given === 'object' && given !== null ? known(Object.entries(given)) : {};
  } catch {
    return {};
  }
}

function known(entries: readonly [string, unknown][]): ZoneFileSettings {
  const settings: ZoneFileSettings = {};
  for (const [key, value] of entries) {
    if (key === 'proxied' && value === true) settings.proxied = true;
    if (key === 'originProtocol' && (value === 'http' || value === 'https')) settings.originProtocol = value;
    if (key === 'originPort' && typeof value === 'number') settings.originPort = value;
    if (key === 'originPath' && typeof value === 'string') settings.originPath = value;
    if (key === 'comment' && typeof value === 'string' && value.length <= 500 && isStorable(value)) settings.comment = value;
    if (key === 'originHostHeader' && typeof value === 'string') settings.originHostHeader = value;
  }
  return settings;
}

import { quoteStrings } from './text-strings';
import { byText, type ZoneRecord } from './rrset';

/** What a zone file says besides its records. */
export type ZoneFileHead = { domain: string; nameservers: readonly string[]; soaRname: string; serial: number };

/** Marks a line that only we read: `;holdfast:` before a record that DNS itself cannot hold, ` ; holdfast {…}` after one with settings. */
export const ownLine = ';holdfast: ';
export const ownSettings = ' ; holdfast ';

/** Settings of a record that zone files have no word for. */
export type ZoneFileSettings = Partial<Pick<ZoneRecord, 'proxied' | 'originProtocol' | 'originPort' | 'originPath' | 'originHostHeader'>> & { comment?: string };
export type ExportedRecord = ZoneRecord & { comment: string | null };

/**
 * A zone file (RFC 1035 §5) that other servers load as it is, and that imports here as the same records: an apex CNAME, which
 * DNS does not allow, proxy settings and comments stand in comments of the file.
 */
export function writeZoneFile(head: ZoneFileHead, records: readonly ExportedRecord[]): string {
  const [primary = head.domain] = head.nameservers;
  const lines = [
    `$ORIGIN ${head.domain}.`,
    '$TTL 300',
    `@ 3600 IN SOA ${primary}. ${head.soaRname}. ${head.serial} 7200 3600 1209600 300`,
    ...head.nameservers.map((server) => `@ 3600 IN NS ${server}.`),
    ...records.toSorted((a, b) => byText(a.name, b.name) || byText(a.type, b.type) || byText(a.value, b.value)).map(writeRecord),
  ];
  return `${lines.join('\n')}\n`;
}

function writeRecord(record: ExportedRecord): string {
  const line = `${record.name} ${record.ttl} IN ${record.type} ${rdata(record)}`;
  const settings = settingsOf(record);
  return `${record.name === '@' && record.type === 'CNAME' ? ownLine : ''}${line}${settings ? `${ownSettings}${JSON.stringify(settings)}` : ''}`;
}

function rdata(record: ZoneRecord): string {
  switch (record.type) {
    case 'A':
    case 'AAAA': return record.value;
    case 'CNAME':
    case 'NS': return `${record.value}.`;
    case 'MX': return `${record.priority ?? 10} ${record.value === '.' ? '.' : `${record.value}.`}`;
    case 'TXT': return quoteStrings(record.value);
    case 'CAA': return record.value.replace(/[^\x20-\x7e]/gu, (char) => [...Buffer.from(char)].map((octet) => `\\${String(octet).padStart(3, '0')}`).join(''));
  }
}

function settingsOf({ proxied, originProtocol, originPort, originPath, originHostHeader, comment }: ExportedRecord): ZoneFileSettings | null {
  const given = Object.entries({ proxied: proxied || null, originProtocol, originPort, originPath, originHostHeader, comment }).filter(([, value]) => value !== null);
  return given.length > 0 ? Object.fromEntries(given) : null;
}

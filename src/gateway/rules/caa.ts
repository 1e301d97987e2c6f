/**
 * Whether a set of CAA records (values like `0 issue "ca.example; …"`) keeps an authority known by these names from issuing
 * (RFC 8659 §4.2, §4.3): a wildcard is judged by issuewild where there is one, a critical property nobody knows forbids.
 */
export function caaForbids(values: readonly string[], identities: readonly string[], wildcard: boolean): boolean {
  const records = values.flatMap((value) => {
    const [, flags = '0', tag = '', text = ''] = /^(\d+)\s+([A-Za-z0-9]+)\s+"?([^"]*)"?$/.exec(value.trim()) ?? [];
    return tag === '' ? [] : [{ critical: (Number(flags) & 0x80) !== 0, tag: tag.toLowerCase(), issuer: (text.split(';')[0] ?? '').trim().toLowerCase() }];
  });
  if (records.some(({ critical, tag }) => critical && !['issue', 'issuewild', 'iodef', 'issuemail'].includes(tag))) return true;
  const wild = wildcard ? records.filter(({ tag }) => tag === 'issuewild') : [];
  const bound = wild.length > 0 ? wild : records.filter(({ tag }) => tag === 'issue');
  return bound.length > 0 && !bound.some(({ issuer }) => identities.includes(issuer));
}

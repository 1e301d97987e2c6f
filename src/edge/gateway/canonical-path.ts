const plain = /^(?:\/[A-Za-z0-9_~!$&'()*+,;=:@-][A-Za-z0-9._~!$&'()*+,;=:@-]*)*\/?$/;

/**
 * A path as rules compare it (contract gateway.md §4.1): percent escapes decoded once (bad UTF-8 becomes U+FFFD), `\` as `/`,
 * without dot segments and repeated slashes. Begins with a slash.
 */
export function canonicalPath(rawPath: string): string {
  if (plain.test(rawPath)) return rawPath === '' ? '/' : rawPath;
  const segments = decoded(rawPath).replaceAll('\\', '/').split('/');
  const kept: string[] = [];
  for (const segment of segments) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  const last = segments.at(-1);
  const isFolder = kept.length > 0 && (last === '' || last === '.' || last === '..');
  return `/${kept.join('/')}${isFolder ? '/' : ''}`;
}

/** An escape that is none stays as it is. */
function decoded(rawPath: string): string {
  const bytes = rawPath.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

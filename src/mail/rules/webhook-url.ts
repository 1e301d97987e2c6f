const secureProtocol = 'https:';
const portsAllowed = ['', '443', '8443'];

/**
 * Why nothing is sent to this URL; null when it may be (contract mail.md §6). What its name resolves to is checked with every
 * connection. `allowPrivate`: development, http and any port too.
 */
export function webhookUrlFault(text: string, { allowPrivate }: { allowPrivate: boolean }): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || url.hostname === '' || /[\s\\]/.test(text)) return 'must be an absolute URL';
  if (url.username !== '' || url.password !== '') return 'must not hold credentials';
  if (url.hash !== '') return 'must not hold a fragment';
  if (url.protocol === secureProtocol) return allowPrivate || portsAllowed.includes(url.port) ? null : 'must use port 443 or 8443';
  return allowPrivate && url.protocol === 'http:' ? null : 'must begin with https://';
}

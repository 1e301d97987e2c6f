import type { IncomingMessage } from 'node:http';

/** What goes with an upgrade that is left out (RFC 9110 §7.8, RFC 7540 §3.2.1). */
const leftOut: ReadonlySet<string> = new Set(['upgrade', 'http2-settings']);

/** Whether a request asks to go on as WebSocket (RFC 6455 §4.1). */
export function isWebSocket({ headers: { upgrade } }: IncomingMessage): boolean {
  return upgrade?.toLowerCase() === 'websocket';
}

/** The head of a request as it came, but for the wish to upgrade: latin1 bytes with their empty line. */
export function withoutUpgrade({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
    const kept = name.toLowerCase() === 'connection' ? value.split(',').filter((option) => !leftOut.has(option.trim().toLowerCase())).join(',') : value;
    if (!leftOut.has(name.toLowerCase()) && (kept !== '' || value === '')) head += `${name}: ${kept}\r\n`;
  }
  return Buffer.from(`${head}\r\n`, 'latin1');
}

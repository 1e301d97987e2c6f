import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { clientHeaders } from './origin-headers';

const idleMs = 300_000;

/**
 * After 101 bytes go both ways as they are (RFC 9110 §7.8), until one side ends or nothing has passed for 300 s. `clientFirst`
 * and `originFirst`: what was read beyond the heads.
 */
export function openTunnel(client: Socket, clientFirst: Buffer, { answer, origin, originFirst, requestId }: { answer: IncomingMessage; origin: Duplex; originFirst: Buffer; requestId: string }): void {
  const close = () => {
    client.destroy();
    origin.destroy();
  };
  let head = `HTTP/1.1 101 ${answer.statusMessage ?? 'Switching Protocols'}\r\nConnection: Upgrade\r\nUpgrade: ${answer.headers.upgrade ?? 'websocket'}\r\n`;
  const headers = clientHeaders(answer.rawHeaders, answer.httpVersion, requestId, null);
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  client.write(`${head}\r\n`, 'latin1');
  if (originFirst.length > 0) client.write(originFirst);
  if (clientFirst.length > 0) origin.write(clientFirst);
  client.setNoDelay(true).setTimeout(idleMs, close);
  client.pipe(origin);
  origin.pipe(client);
  client.on('error', close).on('close', close);
  origin.on('error', close).on('close', close);
}

import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Log } from '../../core/log';
import type { RateLimiter } from './rate-limit';
import { truncate, type Responder } from './responder';

const receiveBufferBytes = 4 * 1024 * 1024;

export type UdpListener = { port: number; close(): Promise<void> };

/** Answers over UDP at this address. Resolves when bound. */
export async function listenUdp(at: { host: string; port: number }, serve: { responder: Responder; limiter: RateLimiter; log: Log }): Promise<UdpListener> {
  const six = isIPv6(at.host);
  const socket = createSocket({ type: six ? 'udp6' : 'udp4', ...(six && { ipv6Only: true }), lookup: asItStands(six ? 6 : 4) });
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(at.port, at.host, () => {
      socket.off('error', reject);
      resolve();
    });
  });
  widenBuffer(socket);
  socket.on('error', (error) => serve.log.warn({ err: error, address: at }, 'DNS socket failed'));
  socket.on('message', (octets, from) => answer(socket, octets, from, serve));
  return { port: socket.address().port, close: () => new Promise((resolve) => socket.close(() => resolve())) };
}

/** Without a callback: an answer that cannot be sent is like one lost on the way. */
function answer(socket: Socket, octets: Buffer, from: RemoteInfo, { responder, limiter }: { responder: Responder; limiter: RateLimiter }): void {
  const response = from.port === 0 ? null : responder.respond(octets, 'udp');
  if (!response) return;
  const verdict = limiter.judge(from.address, response.limitKey);
  if (verdict === 'drop') return;
  socket.send(verdict === 'send' ? response.octets : truncate(response.octets), from.port, from.address);
}

/** Addresses we answer to need no look-up; Node's own would cost a turn of the event loop for each. */
function asItStands(family: 4 | 6) {
  return (address: string, _options: unknown, done: (error: Error | null, address: string, family: number) => void): void => done(null, address, family);
}

/** Room for bursts; systems that allow less keep their own. */
function widenBuffer(socket: Socket): void {
  try {
    socket.setRecvBufferSize(receiveBufferBytes);
  } catch {
    return;
  }
}

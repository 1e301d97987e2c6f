import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket, type SecureContext } from 'node:tls';
import { readFirstPacket, startupBytesMax, type FirstPacket, type Startup } from './wire';

/** A client that has said what it wants. `serverName` is what it called us in TLS (RFC 6066 §3). */
export type Greeting = { stream: Duplex; secure: boolean; serverName: string | null } & ({ kind: 'startup'; startup: Startup } | { kind: 'cancel'; key: string });

const tlsHandshakeRecord = 0x16;

/** A client that breaks the protocol is not answered: it would not understand. */
export class ProtocolViolation extends Error {
  override readonly name = 'ProtocolViolation';
}

/**
 * Everything up to the startup packet: encryption is offered once, in either form (SSLRequest, or TLS from the first byte
 * with ALPN `postgresql`). Errors: ProtocolViolation; the socket's own. The caller keeps the time.
 */
export async function greet(socket: Socket, context: () => SecureContext): Promise<Greeting> {
  const first = await readExactly(socket, 1);
  socket.unshift(first);
  if (first[0] === tlsHandshakeRecord) {
    const secure = await startTls(socket, context());
    if (secure.alpnProtocol !== 'postgresql') throw new ProtocolViolation('direct TLS without ALPN');
    return finish(secure, await readPacket(secure));
  }
  let packet = await readPacket(socket);
  if (packet.kind === 'gssEncryption') {
    refuseEarlyBytes(socket);
    socket.write('N');
    packet = await readPacket(socket);
  }
  if (packet.kind !== 'ssl') return finish(socket, packet);
  refuseEarlyBytes(socket);
  socket.write('S');
  const secure = await startTls(socket, context());
  packet = await readPacket(secure);
  if (packet.kind === 'gssEncryption') {
    secure.write('N');
    packet = await readPacket(secure);
  }
  return finish(secure, packet);
}

function finish(stream: Socket, packet: FirstPacket): Greeting {
  const secure = stream instanceof TLSSocket;
  const name = secure && 'servername' in stream && typeof stream.servername === 'string' ? stream.servername : null;
  if (packet.kind === 'startup') return { kind: 'startup', stream, secure, serverName: name, startup: packet.startup };
  if (packet.kind === 'cancel') return { kind: 'cancel', stream, secure, serverName: name, key: packet.key };
  throw new ProtocolViolation('encryption was asked for twice');
}

/** What came before our answer came from somebody who cannot know it: bytes smuggled in before TLS (CVE-2021-23214). */
function refuseEarlyBytes(socket: Socket): void {
  if (socket.readableLength > 0) throw new ProtocolViolation('bytes before the answer to an encryption request');
}

function startTls(socket: Socket, secureContext: SecureContext): Promise<TLSSocket> {
  const secure = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: ['postgresql'] });
  secure.on('error', () => secure.destroy());
  return new Promise((resolve, reject) => {
    secure.once('secure', () => resolve(secure));
    secure.once('error', reject);
    secure.once('close', () => reject(new ProtocolViolation('the client went away')));
  });
}

async function readPacket(stream: Duplex): Promise<FirstPacket> {
  const length = (await readExactly(stream, 4)).readInt32BE(0);
  if (length < 8 || length > startupBytesMax) throw new ProtocolViolation('a first packet of that length');
  const packet = readFirstPacket(await readExactly(stream, length - 4));
  if (!packet) throw new ProtocolViolation('not a first packet');
  return packet;
}

function readExactly(stream: Duplex, length: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const take = (): boolean => {
      const chunk: unknown = stream.read(length);
      if (!Buffer.isBuffer(chunk) || chunk.length < length) return false;
      stop();
      resolve(chunk);
      return true;
    };
    const fail = (error?: Error) => {
      stop();
      reject(error instanceof Error ? error : new ProtocolViolation('the client went away'));
    };
    const onReadable = () => void take();
    const stop = () => stream.off('readable', onReadable).off('end', fail).off('close', fail).off('error', fail);
    if (!take()) stream.on('readable', onReadable).on('end', fail).on('close', fail).on('error', fail);
  });
}

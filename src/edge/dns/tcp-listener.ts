import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Log } from '../../core/log';
import { TcpConversation, type TcpService } from './tcp-conversation';

const connectionsMax = 1000;
const perAddressMax = 100;

export type TcpListener = { port: number; close(): Promise<void> };

/** Connections of a whole server, however many addresses it listens on; `of` processes share what it may have. */
export class ConnectionCount {
  private total = 0;
  private readonly byAddress = new Map<string, number>();
  private readonly max: number;
  private readonly perAddressMax: number;

  constructor(of = 1) {
    this.max = Math.ceil(connectionsMax / of);
    this.perAddressMax = Math.ceil(perAddressMax / of);
  }

  /** Counts one in; false when there is no room for it. */
  enter(address: string): boolean {
    const here = this.byAddress.get(address) ?? 0;
    if (this.total >= this.max || here >= this.perAddressMax) return false;
    this.total++;
    this.byAddress.set(address, here + 1);
    return true;
  }

  leave(address: string): void {
    const here = this.byAddress.get(address) ?? 0;
    this.total--;
    if (here > 1) this.byAddress.set(address, here - 1);
    else this.byAddress.delete(address);
  }
}

/** Answers over TCP at this address (RFC 7766). Resolves when bound. */
export async function listenTcp(at: { host: string; port: number }, serve: { service: TcpService; connections: ConnectionCount; log: Log }): Promise<TcpListener> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    const address = socket.remoteAddress ?? '';
    if (!serve.connections.enter(address)) return void socket.destroy();
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      serve.connections.leave(address);
    });
    new TcpConversation(socket, address, serve.service).start();
  });
  await listening(server, at);
  server.on('error', (error) => serve.log.warn({ err: error, address: at }, 'DNS listener failed'));
  return { port: portOf(server), close: () => closed(server, open) };
}

function listening(server: Server, at: { host: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: at.port, host: at.host, ipv6Only: true, backlog: 511 }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
}

function closed(server: Server, open: ReadonlySet<Socket>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    for (const socket of open) socket.destroy();
  });
}

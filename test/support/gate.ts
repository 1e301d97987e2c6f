import { connect, createServer, type Socket } from 'node:net';
import { anyFreePort } from '../../src/dev/ports';

/** A TCP proxy before a server that can be shut: then connections break and new ones are refused. */
export interface Gate {
  /** The given URL, through the gate. */
  readonly url: string;
  /** Breaks what is connected; new connections are made as before. */
  cut(): void;
  shut(): Promise<void>;
  open(): Promise<void>;
}

export async function openGate(target: string): Promise<Gate> {
  const { hostname, port } = new URL(target);
  const url = new URL(target);
  const at = await anyFreePort();
  url.hostname = '127.0.0.1';
  url.port = String(at);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined).once('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream).pipe(client);
  });
  const cut = (): void => sockets.forEach((socket) => socket.destroy());
  const open = () => new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve));
  await open();
  return {
    url: url.href, cut, open,
    shut: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      cut();
      await closed;
    },
  };
}

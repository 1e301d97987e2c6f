import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LoginReader, writeFatal, writeStartup, type LoginEvent, type Startup } from './wire';

/**
 * One session between a client and its server: the login passes untouched, then bytes go both ways. `ended` is kept when
 * the server has let go of it, which is when its place is free again.
 */
export class Session {
  readonly ended: Promise<void>;

  /** `login` hears what the server says of the login; not a word after `ready` or `refused`. */
  constructor(private readonly client: Duplex, private readonly server: Socket, startup: Startup, login: (event: LoginEvent) => void) {
    this.ended = new Promise((resolve) => server.once('close', () => resolve()));
    server.write(writeStartup(startup));
    this.watchLogin(login);
    pass(client, server);
    pass(server, client);
    server.once('close', () => client.end());
    client.once('close', () => server.end());
    client.once('end', () => server.end());
  }

  /** Says why, then ends both sides. */
  cut(sqlstate: string, message: string): void {
    this.client.end(writeFatal(sqlstate, message));
    this.server.destroy();
  }

  private watchLogin(login: (event: LoginEvent) => void): void {
    const reader = new LoginReader();
    const watch = (chunk: Buffer) => {
      for (const event of reader.read(chunk)) {
        login(event);
        if (event.kind !== 'key') this.server.off('data', watch);
      }
    };
    this.server.on('data', watch);
  }
}

/** A connection to an instance on this machine. Errors: refused, or not within 2 s. */
export function connectInstance(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    const timer = setTimeout(() => socket.destroy(new Error('The instance did not answer.')), 2_000);
    socket.once('error', reject);
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.off('error', reject).on('error', () => socket.destroy());
      resolve(socket);
    });
    socket.once('close', () => clearTimeout(timer));
  });
}

/** Bytes of one side become the other's, no faster than it takes them. */
function pass(from: Duplex, to: Duplex): void {
  from.on('data', (chunk: Buffer) => {
    if (!to.destroyed && !to.write(chunk)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.resume();
}

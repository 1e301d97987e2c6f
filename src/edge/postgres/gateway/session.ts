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
  constructor(private readonly client: Duplex, private readonly server: Socket, login: (event: LoginEvent) => void) {
    this.ended = new Promise((resolve) => (server.closed ? resolve() : server.once('close', () => resolve())));
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

/**
 * A connection to an instance on this machine that has answered the startup packet; its answer is still to be read. A dying
 * server may accept and say nothing: that is no answer. Errors: refused, silent, or not within 5 s.
 */
export async function openSession(port: number, startup: Startup): Promise<Socket> {
  const socket = await connectInstance(port);
  socket.write(writeStartup(startup));
  await firstByte(socket);
  return socket;
}

/** Errors: refused, or not within 2 s. */
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

function firstByte(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(), 5_000);
    const settle = () => {
      clearTimeout(timer);
      socket.off('readable', answered).off('end', silent).off('close', silent);
    };
    const answered = () => {
      if (socket.readableLength === 0) return;
      settle();
      resolve();
    };
    const silent = () => {
      settle();
      socket.destroy();
      reject(new Error('The instance went away without an answer.'));
    };
    socket.on('readable', answered).on('end', silent).on('close', silent);
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

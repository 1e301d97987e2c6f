import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LoginReader, writeFatal, writeStartup, type LoginEvent, type Startup } from './wire';

const discardMax = 64 * 1024;
const lastWordsMs = 10_000;
const answerMs = 5_000;

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
    server.once('close', () => hangUp(client));
    client.once('end', () => server.end());
    client.once('close', () => this.letGo());
  }

  /** Says why, then ends both sides. */
  cut(sqlstate: string, message: string): void {
    hangUp(this.client, writeFatal(sqlstate, message));
    this.server.destroy();
  }

  /** The server ends in its own time what it was told to do. What it says is for nobody: while it floods it is cut, as by a client of its own. */
  private letGo(): void {
    if (this.server.isPaused()) return this.server.destroySoon();
    let left = discardMax;
    this.server.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) this.server.destroySoon();
    });
    this.server.end();
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

/** Says its last words, if any, and ends; a client that neither reads them nor leaves is not waited for. */
export function hangUp(client: Duplex, words?: Buffer): void {
  if (words) client.end(words);
  else client.end();
  const late = setTimeout(() => client.destroy(), lastWordsMs).unref();
  client.once('close', () => clearTimeout(late));
}

/**
 * A connection to an instance on this machine that has answered the startup packet; its answer is still to be read. A dying
 * server may accept and say nothing: that is no answer. Errors: refused, silent, or not within 5 s.
 */
export async function openSession(port: number, startup: Startup): Promise<Socket> {
  const socket = await connectInstance(port);
  socket.write(writeStartup(startup));
  await firstAnswer(socket);
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

/** Looks at the first message without taking it. A server that is starting or stopping has not answered yet. */
function firstAnswer(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(), answerMs);
    const settle = () => {
      clearTimeout(timer);
      socket.off('readable', answered).off('end', silent).off('close', silent);
    };
    const answered = () => {
      const chunk: unknown = socket.read();
      if (!Buffer.isBuffer(chunk)) return;
      if (isNotYet(chunk)) return silent();
      settle();
      socket.unshift(chunk);
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

/** ErrorResponse with cannot_connect_now: the server starts, stops or recovers. */
function isNotYet(message: Buffer): boolean {
  return message[0] === 0x45 && message.includes('C57P03\0');
}

/** Bytes of one side become the other's, no faster than it takes them. */
function pass(from: Duplex, to: Duplex): void {
  from.on('data', (chunk: Buffer) => {
    if (!to.destroyed && !to.write(chunk)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.resume();
}

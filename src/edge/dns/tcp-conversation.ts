import type { Socket } from 'node:net';
import type { Responder, TransferRequest } from './responder';

/** What a connection needs of the server. `transfer`: the messages of a zone's transfer, or of its refusal. */
export type TcpService = {
  responder: Responder;
  transfer: (request: TransferRequest, address: string) => Iterable<Buffer>;
  /** Told of a mistake of ours that ended a connection. */
  onFault: (error: unknown) => void;
};

const idleMs = 10_000;
/** No request we know is longer; whoever announces more is not asking. */
const requestMax = 4096;

/**
 * One connection: requests are answered in their order, also when many are sent ahead. A client that neither completes a
 * request nor takes an answer within 10 s is cut off; while it does not read, we do not read either.
 */
export class TcpConversation {
  private waiting: Buffer = Buffer.alloc(0);
  private busy = false;
  private readonly idle: NodeJS.Timeout;

  constructor(private readonly socket: Socket, private readonly address: string, private readonly service: TcpService) {
    this.idle = setTimeout(() => socket.destroy(), idleMs);
    this.idle.unref();
  }

  start(): void {
    this.socket.setNoDelay(true);
    this.socket.on('error', () => this.socket.destroy());
    this.socket.once('close', () => clearTimeout(this.idle));
    this.socket.on('data', (chunk: Buffer) => {
      this.waiting = this.waiting.length === 0 ? chunk : Buffer.concat([this.waiting, chunk]);
      if (!this.busy) this.work().catch((error: unknown) => this.giveUp(error));
    });
  }

  private giveUp(error: unknown): void {
    this.service.onFault(error);
    this.socket.destroy();
  }

  private async work(): Promise<void> {
    this.busy = true;
    this.socket.pause();
    for (let request = this.next(); request && !this.socket.destroyed; request = this.next()) await this.answer(request);
    this.busy = false;
    this.socket.resume();
  }

  /** The next whole request; null when it is not all here. */
  private next(): Buffer | null {
    if (this.waiting.length < 2) return null;
    const length = this.waiting.readUInt16BE(0);
    if (length > requestMax) {
      this.socket.destroy();
      return null;
    }
    if (this.waiting.length < 2 + length) return null;
    const request = this.waiting.subarray(2, 2 + length);
    this.waiting = this.waiting.subarray(2 + length);
    this.idle.refresh();
    return request;
  }

  private async answer(request: Buffer): Promise<void> {
    const transfer = this.service.responder.transferOf(request);
    if (!transfer) {
      const response = this.service.responder.respond(request, 'tcp');
      if (response) await this.send(response.octets);
      return;
    }
    for (const message of this.service.transfer(transfer, this.address)) {
      if (this.socket.destroyed) return;
      await this.send(message);
    }
  }

  private async send(message: Buffer): Promise<void> {
    const framed = Buffer.allocUnsafe(2 + message.length);
    framed.writeUInt16BE(message.length, 0);
    message.copy(framed, 2);
    if (!this.socket.write(framed)) await drained(this.socket);
    this.idle.refresh();
  }
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off('drain', done).off('close', done);
      resolve();
    };
    socket.on('drain', done).on('close', done);
  });
}

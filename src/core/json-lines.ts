import { chmod, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { z } from 'zod';
import { AppError, isErrorCode } from './errors';
import type { Log } from './log';

/**
 * Calls between processes of one machine: one JSON object per line over a Unix socket. A request is `{id, method, params}`,
 * its answer `{id, result}` or `{id, error: {code, message}}`, in any order. Who may connect is what the socket's mode says.
 */
const lineMax = 1_048_576;
const request = z.object({ id: z.number().int(), method: z.string(), params: z.unknown().optional() });
const answer = z.object({ id: z.number().int(), result: z.unknown().optional(), error: z.object({ code: z.string(), message: z.string() }).optional() });

/** `peer` is the connection: the same object for all its calls; aborted when it is gone. */
export type Method = (params: unknown, peer: AbortSignal) => Promise<unknown>;

/** Serves until `close`; calls under way are answered first. Errors of a method: AppErrors as they are, all others as `backend_error`. */
export async function serveJsonLines(path: string, mode: number, methods: Readonly<Record<string, Method>>, log: Log): Promise<{ close(): Promise<void> }> {
  await rm(path, { force: true });
  const peers = new Set<Socket>();
  const running = new Set<Promise<void>>();
  const server = createServer((socket) => {
    const gone = new AbortController();
    peers.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      peers.delete(socket);
      gone.abort();
    });
    onLines(socket, (line) => {
      const call = answerLine(line, methods, gone.signal, log).then((text) => void (socket.writable && socket.write(text)));
      running.add(call);
      void call.finally(() => running.delete(call));
    });
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve));
  await chmod(path, mode);
  return {
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await Promise.allSettled(running);
      for (const peer of peers) peer.end();
      await closed;
    },
  };
}

async function answerLine(line: string, methods: Readonly<Record<string, Method>>, peer: AbortSignal, log: Log): Promise<string> {
  const parsed = request.safeParse(parseJson(line));
  if (!parsed.success) return lineOf({ id: -1, error: { code: 'backend_error', message: 'The request is not a call.' } });
  const { id, method, params } = parsed.data;
  const run = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (!run) return lineOf({ id, error: { code: 'backend_error', message: `There is no method ${method}.` } });
  try {
    return lineOf({ id, result: (await run(params, peer)) ?? null });
  } catch (error) {
    if (error instanceof AppError) return lineOf({ id, error: { code: error.code, message: error.message } });
    log.error({ err: error, method }, 'a call failed');
    return lineOf({ id, error: { code: 'backend_error', message: 'The call failed; its cause is in the log of the server.' } });
  }
}

type Waiting = { resolve(result: unknown): void; reject(error: Error): void };

/** Calls over one connection, made when first needed and again after it broke. `onGone` is told each time it breaks. */
export class JsonLineClient {
  private socket: Socket | null = null;
  private readonly waiting = new Map<number, Waiting>();
  private lastId = 0;

  constructor(private readonly path: string, private readonly onGone: () => void = () => {}) {}

  /** Errors: the server's code; `backend_error` when it cannot be reached, answers something else or not within `timeoutMs`. */
  async call<T>(method: string, params: unknown, result: z.ZodType<T>, timeoutMs: number): Promise<T> {
    const id = ++this.lastId;
    const value = await new Promise<unknown>((resolve, reject) => {
      const timer = setTimeout(() => settle(() => reject(unreachable(`${method} was not answered within ${timeoutMs} ms.`))), timeoutMs);
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        this.waiting.delete(id);
        act();
      };
      this.waiting.set(id, { resolve: (value) => settle(() => resolve(value)), reject: (error) => settle(() => reject(error)) });
      this.connection().write(lineOf({ id, method, params }));
    });
    const parsed = result.safeParse(value);
    if (!parsed.success) throw unreachable(`${method} was answered with another shape.`, parsed.error);
    return parsed.data;
  }

  close(): void {
    this.socket?.destroy();
  }

  private connection(): Socket {
    if (this.socket) return this.socket;
    const socket = connect(this.path);
    this.socket = socket;
    let cause: Error | undefined;
    socket.unref();
    socket.on('error', (error) => { cause = error; });
    socket.on('close', () => {
      this.socket = null;
      for (const call of [...this.waiting.values()]) call.reject(unreachable('It does not answer.', cause));
      this.onGone();
    });
    onLines(socket, (line) => this.settle(line));
    return socket;
  }

  private settle(line: string): void {
    const parsed = answer.safeParse(parseJson(line));
    const call = parsed.success ? this.waiting.get(parsed.data.id) : undefined;
    if (!parsed.success || !call) return;
    const { error, result } = parsed.data;
    if (!error) call.resolve(result);
    else call.reject(new AppError(isErrorCode(error.code) ? error.code : 'backend_error', error.message));
  }
}

function unreachable(what: string, cause?: unknown): AppError {
  return new AppError('backend_error', `The instance host: ${what}`, {}, { cause });
}

function onLines(socket: Socket, take: (line: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > lineMax) socket.destroy();
    for (const line of lines) if (line !== '') take(line);
  });
}

function lineOf(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

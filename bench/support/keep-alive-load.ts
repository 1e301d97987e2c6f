import { connect, type Socket } from 'node:net';

export interface KeepAliveLoad { readonly port: number; readonly request: Buffer; readonly connections: number; readonly seconds: number }
export interface KeepAliveShot { readonly perSecond: number; readonly timesMs: readonly number[]; readonly statuses: ReadonlyMap<number, number> }

/** The same request again and again over kept connections, one at a time on each; answers must name their length. The client costs as little as it can. */
export async function shootKeepAlive({ port, request, connections, seconds }: KeepAliveLoad): Promise<KeepAliveShot> {
  const timesMs: number[] = [];
  const statuses = new Map<number, number>();
  const start = performance.now();
  const end = start + seconds * 1_000;
  await Promise.all(Array.from({ length: connections }, () => client({ port, request, end, answered: (status, ms) => {
    timesMs.push(ms);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  } })));
  return { perSecond: timesMs.length / ((performance.now() - start) / 1_000), timesMs, statuses };
}

interface Client { readonly port: number; readonly request: Buffer; readonly end: number; readonly answered: (status: number, ms: number) => void }

function client({ port, request, end, answered }: Client): Promise<void> {
  return new Promise((resolve, reject) => {
    let sentAt = 0;
    let text = '';
    const socket: Socket = connect(port, '127.0.0.1', send);
    socket.setNoDelay(true).on('error', reject).on('close', () => { resolve(); });
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (!isComplete(text)) return;
      answered(Number(text.slice(9, 12)), performance.now() - sentAt);
      text = '';
      if (performance.now() < end) send();
      else socket.end();
    });
    function send(): void {
      sentAt = performance.now();
      socket.write(request);
    }
  });
}

function isComplete(text: string): boolean {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head + 2))?.[1];
  if (length !== undefined) return text.length >= head + 4 + Number(length);
  return /\r\ntransfer-encoding: *chunked/i.test(text.slice(0, head + 2)) ? text.endsWith('0\r\n\r\n') : true;
}

import type { Duplex } from 'node:stream';

/** A header section as it is written, whatever a library would say of it: names and values are latin1 byte strings. */
export type RawHeaders = readonly (readonly [name: string, value: string])[];

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const types = { data: 0, headers: 1, reset: 3, settings: 4, goAway: 7 } as const;
const flag = { ack: 1, endStream: 1, endHeaders: 4 } as const;

/** HPACK without table and Huffman coding (RFC 7541 §6.2.2). */
function block(headers: RawHeaders): Buffer {
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const rest: number[] = [127];
  let left = bytes.length - 127;
  for (; left >= 128; left >>>= 7) rest.push((left & 127) | 128);
  return Buffer.concat([Buffer.from([...rest, left]), bytes]);
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/**
 * Sends one request over a connection of its own and waits for the first thing that decides it: its status as far as the answer's
 * header block says it in the static table, 'reset' or 'closed'.
 */
export function askRawHttp2(socket: Duplex, headers: RawHeaders, body: Buffer | null = null): Promise<number | 'reset' | 'closed'> {
  return new Promise((done) => {
    let held = Buffer.alloc(0);
    const finish = (what: number | 'reset' | 'closed') => {
      done(what);
      socket.destroy();
    };
    socket.on('error', () => finish('closed')).on('close', () => finish('closed')).on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      for (let length = held.length >= 9 ? held.readUIntBE(0, 3) : 0; held.length >= 9 + length && held.length >= 9; length = held.length >= 9 ? held.readUIntBE(0, 3) : 0) {
        const [type, flags, payload] = [held[3], held[4] ?? 0, held.subarray(9, 9 + length)];
        held = held.subarray(9 + length);
        if (type === types.settings && !(flags & flag.ack)) socket.write(frame(types.settings, flag.ack, 0, Buffer.alloc(0)));
        if (type === types.headers) finish(statusOf(payload));
        if (type === types.reset) finish('reset');
        if (type === types.goAway) finish('closed');
      }
    });
    const head = block(headers);
    socket.write(Buffer.concat([preface, frame(types.settings, 0, 0, Buffer.alloc(0)), frame(types.headers, flag.endHeaders | (body ? 0 : flag.endStream), 1, head), ...(body ? [frame(types.data, flag.endStream, 1, body)] : [])]));
  });
}

/** `:status` comes first: one of the static table's (RFC 7541 appendix A, 8 to 14), else written out. */
function statusOf(payload: Buffer): number {
  const known: Record<number, number> = { 0x88: 200, 0x89: 204, 0x8a: 206, 0x8b: 304, 0x8c: 400, 0x8d: 404, 0x8e: 500 };
  return known[payload[0] ?? 0] ?? (Number(/\d{3}/.exec(payload.toString('latin1'))?.[0]) || 0);
}

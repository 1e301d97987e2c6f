/**
 * The part of PostgreSQL's protocol 3 (Frontend/Backend Protocol, "Message Formats") that is spoken before a session
 * belongs to two other parties: the first packets, refusals, and what the login phase tells about the session.
 */
export const requestCodes = { cancel: 80_877_102, ssl: 80_877_103, gssEncryption: 80_877_104 } as const;
export const startupBytesMax = 10_000;

export type Startup = { protocol: number; parameters: Map<string, string> };
/** `key` is what BackendKeyData of the session said: process id and secret, as sent. */
export type FirstPacket = { kind: 'startup'; startup: Startup } | { kind: 'cancel'; key: string } | { kind: 'ssl' } | { kind: 'gssEncryption' };

/** A packet after its length word. Null for anything that is not one of the four kinds, or not whole. */
export function readFirstPacket(body: Buffer): FirstPacket | null {
  if (body.length < 4) return null;
  const code = body.readInt32BE(0);
  switch (code) {
    case requestCodes.ssl: return body.length === 4 ? { kind: 'ssl' } : null;
    case requestCodes.gssEncryption: return body.length === 4 ? { kind: 'gssEncryption' } : null;
    case requestCodes.cancel: return body.length >= 12 && body.length <= 8 + 256 ? { kind: 'cancel', key: body.toString('hex', 4) } : null;
    default: {
      const parameters = readParameters(body.subarray(4));
      return parameters && code >>> 16 === 3 ? { kind: 'startup', startup: { protocol: code, parameters } } : null;
    }
  }
}

/** Written again from what was understood, so nothing that was not understood reaches a server. */
export function writeStartup({ protocol, parameters }: Startup): Buffer {
  const texts = [...parameters].flat().map((text) => Buffer.from(`${text}\0`));
  const body = Buffer.concat([...texts, Buffer.of(0)]);
  const head = Buffer.alloc(8);
  head.writeInt32BE(body.length + 8, 0);
  head.writeInt32BE(protocol, 4);
  return Buffer.concat([head, body]);
}

export function writeCancel(key: string): Buffer {
  const body = Buffer.from(key, 'hex');
  const head = Buffer.alloc(8);
  head.writeInt32BE(body.length + 8, 0);
  head.writeInt32BE(requestCodes.cancel, 4);
  return Buffer.concat([head, body]);
}

/** ErrorResponse of severity FATAL. */
export function writeFatal(sqlstate: string, message: string): Buffer {
  const body = Buffer.from(`SFATAL\0VFATAL\0C${sqlstate}\0M${message}\0\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

/** What the server has said of a login; `refused` holds the SQLSTATE. */
export type LoginEvent = { kind: 'key'; key: string } | { kind: 'ready' } | { kind: 'refused'; sqlstate: string };

/** Reads the server's messages up to the end of the login, whatever pieces they come in. Keeps no more than one short message. */
export class LoginReader {
  private pending = Buffer.alloc(0);
  private skip = 0;
  private ready = false;

  /** Events in order; after `ready` come the session's own messages, which are not read. */
  read(chunk: Buffer): LoginEvent[] {
    if (this.ready) return [];
    const events: LoginEvent[] = [];
    let data = Buffer.concat([this.pending, chunk]);
    for (;;) {
      const skipped = Math.min(this.skip, data.length);
      this.skip -= skipped;
      data = data.subarray(skipped);
      if (this.skip > 0 || data.length < 5) break;
      const type = String.fromCharCode(data.readUInt8(0));
      const length = data.readInt32BE(1) + 1;
      if (type === 'Z') {
        events.push({ kind: 'ready' });
        this.ready = true;
        break;
      }
      if (type !== 'K' && type !== 'E') {
        this.skip = Math.max(5, length);
        continue;
      }
      if (length > startupBytesMax) {
        this.skip = length;
        continue;
      }
      if (data.length < length) break;
      events.push(type === 'K' ? { kind: 'key', key: data.toString('hex', 5, length) } : { kind: 'refused', sqlstate: sqlstateOf(data.toString('latin1', 5, length)) });
      data = data.subarray(length);
    }
    this.pending = Buffer.from(data);
    return events;
  }
}

function sqlstateOf(fields: string): string {
  return fields.split('\0').find((field) => field.startsWith('C'))?.slice(1) ?? 'XX000';
}

/** Pairs of zero-terminated texts, then one zero; of two of a name the last counts, as in the server. */
function readParameters(bytes: Buffer): Map<string, string> | null {
  const text = bytes.toString('utf8');
  if (!text.endsWith('\0') || !Buffer.from(text).equals(bytes)) return null;
  const parts = text.slice(0, -1).split('\0');
  if (parts.pop() !== '' && parts.length > 0) return null;
  if (parts.length % 2 !== 0) return null;
  const parameters = new Map<string, string>();
  for (let index = 0; index < parts.length; index += 2) {
    const name = parts[index] ?? '';
    if (name === '') return null;
    parameters.set(name, parts[index + 1] ?? '');
  }
  return parameters;
}

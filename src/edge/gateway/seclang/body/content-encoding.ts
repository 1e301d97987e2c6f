import { brotliDecompressSync, constants, gunzipSync, inflateRawSync, inflateSync } from 'node:zlib';
import { ratioMax } from './types';

/** Decoded bodies are never longer than this, whatever the ratio allows. */
const decodedMax = 4_194_304;
const slack = 16_384;

/** The body without its content encodings. `excess`: it would grow more than a hundredfold; `failed`: it is not what the header says. */
export function decodeBody(body: Buffer, contentEncoding: string): { body: Buffer; excess: boolean; failed: boolean } {
  const maxOutputLength = Math.min(decodedMax, body.length * ratioMax + slack);
  let decoded = body;
  const encodings = contentEncoding.toLowerCase().split(',').map((part) => part.trim()).filter((part) => part !== '' && part !== 'identity');
  if (encodings.length > 3) return { body, excess: true, failed: false };
  for (const encoding of encodings.toReversed()) {
    const decode = decoders[encoding];
    if (!decode) return { body: decoded, excess: false, failed: true };
    try {
      decoded = decode(decoded, maxOutputLength);
    } catch (error) {
      const tooLong = typeof error === 'object' && error !== null && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
      return { body: decoded, excess: tooLong, failed: !tooLong };
    }
  }
  return { body: decoded, excess: false, failed: false };
}

type Decode = (body: Buffer, maxOutputLength: number) => Buffer;
const zlib = (maxOutputLength: number) => ({ maxOutputLength, finishFlush: constants.Z_SYNC_FLUSH });
const gzip: Decode = (body, max) => gunzipSync(body, zlib(max));
/** RFC 9110 §8.4.1.2 means zlib's format; what some clients send is the raw one. */
const deflate: Decode = (body, max) => (((body[0] ?? 0) & 0x0f) === 8 ? inflateSync(body, zlib(max)) : inflateRawSync(body, zlib(max)));
const decoders: Readonly<Record<string, Decode>> = {
  gzip, 'x-gzip': gzip, deflate, br: (body, max) => brotliDecompressSync(body, { maxOutputLength: max, finishFlush: constants.BROTLI_OPERATION_FLUSH }),
};

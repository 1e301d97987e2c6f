import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import type { Decision } from '../../gateway/ports';
import type { Visit } from './visit';

const bytesMax = 524_288;
const text = /^(?:text\/(?!event-stream)|application\/(?:[a-z0-9.-]+\+)?(?:json|xml|javascript|xhtml))/i;
const decoders: Readonly<Record<string, (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>> = {
  gzip: promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip), deflate: promisify<Buffer, { maxOutputLength: number }, Buffer>(inflate), br: promisify<Buffer, { maxOutputLength: number }, Buffer>(brotliDecompress),
};

/**
 * Stage 14: texts of at most 512 KiB are held back until the policy has judged them; longer ones are judged by their beginning.
 * Null: this answer is not looked at. Resolves with what has been read, or null when the decision refuses it.
 */
export function inspectAnswer(visit: Visit, answer: IncomingMessage, decided: (decision: Decision) => void): Promise<readonly Buffer[] | null> | null {
  if (!text.test(answer.headers['content-type'] ?? '') || !visit.judge.inspectsAnswer(visit.facts)) return null;
  return inspected(visit, answer, decided);
}

async function inspected(visit: Visit, answer: IncomingMessage, decided: (decision: Decision) => void): Promise<readonly Buffer[] | null> {
  const chunks = visit.head.method === 'HEAD' ? [] : await beginning(answer);
  const body = await plain(Buffer.concat(chunks), answer.headers['content-encoding'] ?? '');
  const headers: [string, string][] = [];
  for (let i = 0; i < answer.rawHeaders.length; i += 2) headers.push([(answer.rawHeaders[i] ?? '').toLowerCase(), answer.rawHeaders[i + 1] ?? '']);
  const decision = await visit.judge.judgeResponse(visit.whole, visit.decision, { status: answer.statusCode ?? 0, headers, body });
  decided(decision);
  return decision.refusal ? null : chunks;
}

function beginning(answer: IncomingMessage): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  return new Promise((resolve, reject) => {
    const done = () => {
      answer.off('data', take).off('end', done).off('close', broken);
      resolve(chunks);
    };
    const take = (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes < bytesMax) return;
      answer.pause();
      done();
    };
    const broken = () => reject(new Error('The origin broke off.'));
    answer.on('data', take).once('end', done).once('close', broken);
  });
}

/** What cannot be decoded is judged as it is. */
async function plain(body: Buffer, encoding: string): Promise<Buffer> {
  const decode = decoders[encoding.toLowerCase()];
  if (!decode || body.length === 0) return body;
  return decode(body, { maxOutputLength: bytesMax }).catch(() => body);
}

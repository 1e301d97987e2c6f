/** A thread of the rule engine: loads the rule sets itself and judges what the event loop hands over. */
import { parentPort, workerData } from 'node:worker_threads';
import { z } from 'zod';
import { inspectWithin } from './engine';
import { loadSets } from './sets';
import { warmUp } from './warm-up';
import type { FromThread, Work } from './thread-messages';

const folders = z.object({ crsDir: z.string().nullable(), rulesDir: z.string().nullable() }).parse(workerData);
const { sets } = loadSets(folders);
warmUp(sets);
const port = parentPort;
const send = (message: FromThread) => port?.postMessage(message);

/** Structured cloning makes plain byte arrays of buffers. */
function buffer(bytes: Uint8Array | null): Buffer | null {
  return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

port?.on('message', ({ id, inspected: { facts, response, settings, now }, until }: Work) => {
  const inspected = { facts: { ...facts, body: buffer(facts.body) }, response: response && { ...response, body: buffer(response.body) }, settings, now };
  send({ kind: 'verdict', id, verdict: inspectWithin(sets, inspected, until - performance.timeOrigin - performance.now()) });
});
send({ kind: 'ready' });

import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isMissing } from '../../../core/files';
import { Semaphore } from '../../../core/keyed-queue';

/** A file below the tree, as it was written. */
export type FileFacts = { path: string; bytes: number; sha256: string };
export type Tree = { directories: string[]; files: FileFacts[] };

const atOnce = 8;
/** Larger files pass through in pieces. */
const wholeMax = 4 * 1024 * 1024;

/** Everything below a directory that `wanted` lets through, in the order of names. */
export async function listTree(root: string, wanted: (path: string) => boolean, below = ''): Promise<{ directories: string[]; files: string[] }> {
  const found: { directories: string[]; files: string[] } = { directories: [], files: [] };
  for (const entry of (await readdir(join(root, below), { withFileTypes: true })).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(below, entry.name);
    if (!wanted(path)) continue;
    if (entry.isFile()) found.files.push(path);
    if (!entry.isDirectory()) continue;
    const inner = await listTree(root, wanted, path).catch(orMissing({ directories: [], files: [] }));
    found.directories.push(path, ...inner.directories);
    found.files.push(...inner.files);
  }
  return found;
}

/**
 * Copies the listed files and says what each copy holds; one that has gone away meanwhile is left out. `goOn` is asked before
 * each and throws to end it.
 */
export async function copyTree(from: string, to: string, list: { directories: readonly string[]; files: readonly string[] }, goOn: () => void): Promise<FileFacts[]> {
  for (const directory of list.directories) await mkdir(join(to, directory), { recursive: true, mode: 0o700 });
  const slots = new Semaphore(atOnce);
  const copied = await Promise.all(list.files.map((path) => slots.run(async () => {
    goOn();
    return copyFile(join(from, path), join(to, path)).then((facts) => ({ path, ...facts }), orMissing(null));
  })));
  return copied.filter((facts) => facts !== null);
}

async function copyFile(from: string, to: string): Promise<Omit<FileFacts, 'path'>> {
  const hash = createHash('sha256');
  if ((await stat(from)).size <= wholeMax) {
    const content = await readFile(from);
    await writeFile(to, content, { mode: 0o600 });
    return { bytes: content.length, sha256: hash.update(content).digest('hex') };
  }
  let bytes = 0;
  const measured = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  await pipeline(createReadStream(from, { highWaterMark: 1024 * 1024 }), measured, createWriteStream(to, { mode: 0o600 }));
  return { bytes, sha256: hash.digest('hex') };
}

function orMissing<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (isMissing(error)) return instead;
    throw error;
  };
}

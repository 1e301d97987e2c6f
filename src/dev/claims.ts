import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isMissing } from '../core/files';
import { identifyProcess, isRunning, pidOf } from './process-identity';

/**
 * A file that names the process it belongs to: claimed when this process now owns it, otherwise the owner's pid (0 when the
 * file may not be replaced). It appears with its content or not at all, and a dead owner's is taken over.
 */
export async function claimFile(file: string): Promise<{ claimed: true; release: () => Promise<void> } | { claimed: false; ownerPid: number }> {
  const draft = `${file}.${process.pid}-${Math.random().toString(36).slice(2)}`;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(draft, (await identifyProcess(process.pid)) ?? '', { mode: 0o644 });
  try {
    for (let triesLeft = 50; triesLeft > 0; triesLeft -= 1) {
      if (await link(draft, file).then(() => true, () => false)) return { claimed: true, release: () => rm(file, { force: true }) };
      const owner = await readFile(file, 'utf8').catch(() => null);
      if (owner === null) continue; // released or put aside this moment
      if ((await isRunning(owner)) || !(await putAside(file, owner, `${draft}.old`))) return { claimed: false, ownerPid: pidOf(owner) };
    }
    return { claimed: false, ownerPid: 0 };
  } finally {
    await rm(draft, { force: true });
  }
}

/** A dead owner's claim is renamed, which only one of several can do; a living one's that came in its place is given back. False: it may not be replaced. */
async function putAside(file: string, owner: string, aside: string): Promise<boolean> {
  try {
    await rename(file, aside);
  } catch (error) {
    return isMissing(error);
  }
  const moved = await readFile(aside, 'utf8');
  if (moved !== owner && (await isRunning(moved))) await link(aside, file).catch(() => undefined);
  await rm(aside, { force: true });
  return true;
}

import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
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
    const owner = await readFile(file, 'utf8').catch(() => '');
    if (await isRunning(owner)) return { claimed: false, ownerPid: pidOf(owner) };
    await rm(file, { force: true });
    await link(draft, file);
    return { claimed: true, release: () => rm(file, { force: true }) };
  } catch {
    return { claimed: false, ownerPid: pidOf(await readFile(file, 'utf8').catch(() => '')) };
  } finally {
    await rm(draft, { force: true });
  }
}

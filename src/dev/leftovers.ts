import { readFile, rename, writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { identifyProcess, isRunning, pidOf, signal } from './process-identity';

const shape = z.array(z.strictObject({ name: z.string(), identity: z.string() }));

/** Notes who runs, so that the next start can end what a killed supervisor left behind. */
export async function recordProcesses(file: string, processes: readonly { name: string; pid: number }[]): Promise<void> {
  const entries = await Promise.all(processes.map(async ({ name, pid }) => ({ name, identity: (await identifyProcess(pid)) ?? '' })));
  const fresh = `${file}.new`;
  await writeFile(fresh, `${JSON.stringify(entries)}\n`, { mode: 0o600 });
  await rename(fresh, file);
}

/**
 * Ends what the last supervisor of this clone left running. Its processes end by themselves when it is gone, so they get a
 * moment; then they are told to, then made to. A number that belongs to another process by now is left alone.
 */
export async function endLeftovers(file: string, say: (text: string) => void): Promise<void> {
  const text = await readFile(file, 'utf8').catch(() => '[]');
  const parsed = shape.safeParse(parseJson(text));
  for (const { name, identity } of parsed.success ? parsed.data : []) {
    if (!(await isRunning(identity))) continue;
    say(`${name} of an earlier start still runs (process ${pidOf(identity)}); ending it.`);
    if (await gone(identity, 2_000)) continue;
    signal(pidOf(identity), 'SIGTERM');
    if (await gone(identity, 5_000)) continue;
    signal(pidOf(identity), 'SIGKILL');
    await gone(identity, 5_000);
  }
}

async function gone(identity: string, withinMs: number): Promise<boolean> {
  for (const until = Date.now() + withinMs; Date.now() < until; await pause(50)) {
    if (!(await isRunning(identity))) return true;
  }
  return false;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

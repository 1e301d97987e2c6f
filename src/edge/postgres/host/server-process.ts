import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Owner } from './site';

const pollMs = 2;

/** Programs of ours run with nothing of our own environment: it holds the platform's secrets. */
export const cleanEnvironment = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/**
 * The postmaster of a data directory; null when none runs. postmaster.pid alone proves nothing after a crash, since pids
 * come round again: the process must stand in the directory.
 */
export function postmasterOf(data: string): number | null {
  try {
    const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n', 1)[0]);
    return Number.isInteger(pid) && pid > 0 && standsIn(pid, data) ? pid : null;
  } catch {
    return null;
  }
}

/**
 * Whether the postmaster takes connections: it says so in the eighth line of postmaster.pid (src/include/utils/pidfile.h),
 * which is what pg_ctl waits for. Asking by connecting would fork a backend every time, just when the server needs the CPU.
 */
export function isReady(data: string): boolean {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    return lines[7]?.trim() === 'ready' && standsIn(Number(lines[0]), data);
  } catch {
    return false;
  }
}

export type ServerStart = { binaries: string; data: string; log: string; owner: Owner | null; modest: boolean };

/**
 * Starts a postmaster that outlives us. `modest`: it yields to others, in time and when memory runs out. The answer ends
 * when the process does, which in a healthy start is long after anybody has asked.
 */
export function startServer({ binaries, data, log, owner, modest }: ServerStart): Promise<void> {
  const output = openSync(log, 'a', 0o600);
  try {
    const child = spawn(join(binaries, 'postgres'), ['-D', data], {
      ...owner, detached: true, stdio: ['ignore', output, output], env: cleanEnvironment, cwd: '/',
    });
    child.unref();
    if (owner && modest && child.pid) yieldToOthers(child.pid);
    return new Promise((resolve) => child.once('exit', () => resolve()).once('error', () => resolve()));
  } finally {
    closeSync(output);
  }
}

/** No process stands in the directory any more: fast shutdown, after 20 s an immediate one, then the end by force. `kept` false: nothing in it is worth the first. */
export async function stopServer(data: string, kept = true): Promise<void> {
  for (const [signal, patienceMs] of [...(kept ? [['SIGINT', 20_000] as const] : []), ['SIGQUIT', 5_000], ['SIGKILL', 5_000]] as const) {
    const pid = postmasterOf(data);
    if (pid === null) break;
    send(pid, signal);
    for (let waited = 0; waited < patienceMs && standsIn(pid, data); waited += pollMs) await delay(pollMs);
  }
  await endLeftovers(data);
}

/** Whether a postmaster has not ended as it should: one that does takes its lock file away, last of all. */
export function hasLock(data: string): boolean {
  return existsSync(join(data, 'postmaster.pid'));
}

/**
 * Children of a postmaster that was killed hold its shared memory, and with it the directory: they are ended. Its lock file goes as well:
 * a postmaster that nobody has reaped yet is a zombie, which the next one would take for a living server.
 */
export async function endLeftovers(data: string): Promise<void> {
  for (;;) {
    const left = processesIn(data);
    if (left.length === 0) return rmSync(join(data, 'postmaster.pid'), { force: true });
    for (const pid of left) send(pid, 'SIGKILL');
    await delay(pollMs);
  }
}

/** Processes that stand in the data directory: a postmaster and what it has forked. */
export function processesIn(data: string): number[] {
  return readdirSync('/proc').map(Number).filter((pid) => pid > 0 && standsIn(pid, data));
}

function standsIn(pid: number, data: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === data;
  } catch {
    return false;
  }
}

export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile, which is what the signal was for.
  }
}

function yieldToOthers(pid: number): void {
  try {
    setPriority(pid, 10);
    writeFileSync(`/proc/${pid}/oom_score_adj`, '500');
  } catch {
    // It has ended already; whoever waits for it to be ready finds out.
  }
}

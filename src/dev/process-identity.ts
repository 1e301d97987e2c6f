import { readFile } from 'node:fs/promises';

/**
 * A process as `<pid>:<start time>`: what a pid file must hold so that a number given to another process later, or after a
 * power cut, is not taken for it. Undefined when no such process runs. Start time: proc(5), /proc/<pid>/stat field 22. A
 * zombie whose other threads (field 20) are still ending holds its ports: it runs.
 */
export async function identifyProcess(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (text === undefined) return process.platform === 'linux' || !alive(pid) ? undefined : `${pid}:0`;
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' && Number(fields[17]) <= 1 ? undefined : `${pid}:${fields[19]}`;
}

/** Whether the process that wrote this identity still runs. */
export async function isRunning(identity: string): Promise<boolean> {
  const pid = pidOf(identity);
  return pid > 1 && (await identifyProcess(pid)) === identity.trim();
}

export function pidOf(identity: string): number {
  return Number(/^(\d+):\d+\s*$/.exec(identity)?.[1] ?? 0);
}

/** Sends a signal; false when there is no such process or it is another user's. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

function alive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

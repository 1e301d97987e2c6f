import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, renameSync, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { signal } from './process-identity';

/**
 * A server that lives no longer than this process, however this process ends. A shell holds the other end of a pipe: when
 * the pipe closes (stop(), an exit, a kill -9) it sends the server its stop signal and removes what it was told to remove.
 */
export interface LeashedServer {
  /** Of the server itself, not of the shell. */
  readonly pid: number;
  readonly running: boolean;
  readonly exited: Promise<void>;
  /** Asks it to stop, after `graceMs` makes it; resolves when it is gone. */
  stop(graceMs?: number): Promise<void>;
}

export interface LeashOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly stopSignal: 'INT' | 'TERM';
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Run it as this user (only root may). */
  readonly user?: { uid: number; gid: number } | undefined;
  readonly removeAfterwards?: string;
}

// The background server gets no terminal; `read` ends when the pipe does. $1 signal, $2 path to remove or empty, then the command.
const script = `
stop=$1; remove=$2; shift 2
exec 3<&0 4>&1 >&2
"$@" </dev/null 3<&- 4>&- &
server=$!
echo "$server" >&4
( read -r _ <&3; kill -s "$stop" "$server" ) 4>&- 2>/dev/null &
watch=$!
exec 4>&-
trap 'kill -s "$stop" "$server"' INT TERM HUP
wait "$server"; code=$?
while kill -0 "$server" 2>/dev/null; do wait "$server"; code=$?; done
kill "$watch" 2>/dev/null
[ -z "$remove" ] || rm -rf -- "$remove"
exit "$code"
`;

/** Starts the server; resolves as soon as its pid is known, which says nothing about its being ready. */
export async function startLeashed(options: LeashOptions): Promise<LeashedServer> {
  const log = openLog(options.logFile);
  const shell = spawn('/bin/sh', ['-c', script, 'leash', options.stopSignal, options.removeAfterwards ?? '', options.command, ...options.args], {
    stdio: ['pipe', 'pipe', log],
    detached: true,
    cwd: '/',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C.UTF-8', ...options.env },
    ...(options.user ?? {}),
  });
  closeSync(log);
  const exited = new Promise<void>((resolve) => shell.once('close', () => resolve()));
  const pid = await readPid(shell);
  shell.stdin?.on('error', () => undefined);
  return {
    pid,
    exited,
    get running() {
      return shell.exitCode === null && shell.signalCode === null;
    },
    stop: async (graceMs = 15_000) => {
      shell.stdin?.end();
      const force = setTimeout(() => signal(pid, 'SIGKILL'), graceMs);
      await exited;
      clearTimeout(force);
    },
  };
}

const logBytesMax = 10 * 1024 * 1024;

/** A server writes its log itself, so a long one is put aside only here. */
function openLog(file: string): number {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > logBytesMax) renameSync(file, `${file}.1`);
  return openSync(file, 'a', 0o600);
}

async function readPid(shell: ChildProcess): Promise<number> {
  const failed = new Promise<never>((_, reject) => shell.once('error', reject));
  failed.catch(() => undefined);
  if (!shell.stdout) throw new Error('unreachable: standard output is a pipe');
  const lines = createInterface({ input: shell.stdout });
  const line = await Promise.race([failed, new Promise<string>((resolve) => lines.once('line', resolve).once('close', () => resolve('')))]);
  const pid = Number(line);
  if (!Number.isInteger(pid) || pid <= 1) throw new Error('The server could not be started.');
  return pid;
}

import { fork } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Running } from './supervised';

export interface ChildOptions {
  readonly name: string;
  /** Compiled entry file. */
  readonly entry: string;
  readonly env: Readonly<Record<string, string>>;
  readonly onLine: (line: string) => void;
  readonly readyWithinMs: number;
}

/** Longer than any process of ours takes to drain (src/core/process.ts). */
const stopGraceMs = 32_000;
/** How long one that has drained may take to exit, which Node 20 does not always do. */
const exitGraceMs = 1_000;

/**
 * One of our entry files as a child that is ready (`announceReady`). It is a session of its own, so Ctrl-C reaches only the
 * supervisor, which ends its children in order; when the supervisor dies the closed channel ends them.
 * Errors: it ended or was silent for too long before it was ready; then it is gone.
 */
export async function startChild(options: ChildOptions, spawned: (running: Running) => void): Promise<Running> {
  const child = fork(options.entry, [], {
    detached: true,
    execArgv: ['--enable-source-maps'],
    env: options.env,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  for (const stream of [child.stdout, child.stderr]) if (stream) createInterface({ input: stream }).on('line', options.onLine);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()).once('error', () => resolve()));
  const running: Running = {
    pid: child.pid ?? 0,
    exited,
    stop: async (graceMs = stopGraceMs) => {
      child.kill('SIGTERM');
      const force = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await exited;
      clearTimeout(force);
    },
  };
  child.on('message', (message) => {
    if (says(message, 'drained')) setTimeout(() => child.kill('SIGKILL'), exitGraceMs).unref();
  });
  spawned(running);
  let timer: NodeJS.Timeout | undefined;
  const outcome = await Promise.race([
    new Promise<'ready'>((resolve) => child.on('message', (message) => says(message, 'ready') && resolve('ready'))),
    exited.then(() => 'ended' as const),
    new Promise<'silent'>((resolve) => {
      timer = setTimeout(() => resolve('silent'), options.readyWithinMs);
    }),
  ]);
  clearTimeout(timer);
  if (outcome === 'ready') return running;
  await running.stop(2_000);
  throw new Error(outcome === 'silent' ? `${options.name} was not ready within ${options.readyWithinMs / 1000} s` : `${options.name} ended (${child.exitCode ?? child.signalCode}) before it was ready`);
}

function says(message: unknown, what: 'ready' | 'drained'): boolean {
  return typeof message === 'object' && message !== null && Reflect.get(message, what) === true;
}

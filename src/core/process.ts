/**
 * How a process of ours lives: it tells its parent when it is ready, and it ends in order on SIGTERM, on SIGINT and when
 * its parent is gone (the IPC channel closes), so no process outlives `npm start`. Without a parent that listens (systemd,
 * a container) the same calls work: nothing is told and signals end it.
 */
export type ShutdownReason = 'SIGTERM' | 'SIGINT' | 'disconnect';

type Drain = (reason: ShutdownReason) => Promise<void> | void;

const drains: Drain[] = [];
let ending = false;

/** Tells the supervisor that this process does its work now. `facts` are the addresses it really listens on. */
export function announceReady(facts: Readonly<Record<string, unknown>> = {}): void {
  process.send?.({ ready: true, ...facts }, () => undefined);
}

/**
 * `drain` runs once when the process is asked to end, then the process exits. Several drains run one after another, the
 * last registered first. What is not done after `deadlineMs` (of the first call, default 25 s) is given up: the process kills itself.
 */
export function onShutdown(drain: Drain, deadlineMs = 25_000): void {
  drains.push(drain);
  if (drains.length > 1) return;
  const end = (reason: ShutdownReason) => void shutDown(reason, deadlineMs);
  process.once('SIGTERM', end).once('SIGINT', end);
}

/** Without a parent its database and its Temporal are going too: there is little to wait for. */
const orphanDeadlineMs = 5_000;
// From the first moment on: the parent may be gone before the process has come to register a drain.
if (process.channel) process.once('disconnect', () => void shutDown('disconnect', orphanDeadlineMs));

/** Runs the process's main part. What it cannot start with is said on stderr in full, and exit code 1 says so too. */
export function runProcess(main: () => Promise<void>): void {
  main().catch((error: unknown) => {
    const text = error instanceof Error && error.name !== 'ConfigError' ? (error.stack ?? error.message) : String(error instanceof Error ? error.message : error);
    process.stderr.write(`${text}\n`);
    process.exit(1);
  });
}

async function shutDown(reason: ShutdownReason, deadlineMs: number): Promise<void> {
  if (ending) return;
  ending = true;
  // Not exit(): that waits for native threads, of which one may be what hangs.
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), deadlineMs).unref();
  let failed = false;
  for (let drain = drains.pop(); drain; drain = drains.pop()) {
    try {
      await drain(reason);
    } catch (error) {
      failed = true;
      process.stderr.write(`shutdown: ${error instanceof Error ? error.stack : String(error)}\n`);
    }
  }
  leave(reason, failed ? 1 : 0);
}

/** Node 20's exit() may wait for ever for V8's own threads (nodejs/node#54918): without a parent nobody would end that, with one it is told. */
function leave(reason: ShutdownReason, code: 0 | 1): void {
  if (reason === 'disconnect') process.kill(process.pid, 'SIGKILL');
  else if (process.send && process.connected) process.send({ drained: true }, () => process.exit(code));
  else process.exit(code);
}

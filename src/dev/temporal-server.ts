import { setTimeout as pause } from 'node:timers/promises';
import { readFile } from 'node:fs/promises';
import { Connection } from '@temporalio/client';
import { startLeashed, type LeashedServer } from './leash';

export interface TemporalServerOptions {
  readonly binary: string;
  readonly port: number;
  readonly httpPort: number;
  readonly metricsPort: number;
  /** Null: no UI. */
  readonly uiPort: number | null;
  /** Null: forgets all at its end. */
  readonly dbFile: string | null;
  readonly logFile: string;
  readonly namespaces?: readonly string[];
  readonly searchAttributes?: readonly string[];
  readonly removeAfterwards?: string;
  /** Called when there is a process, before it answers. */
  readonly onSpawn?: (server: LeashedServer) => void;
}

export interface TemporalServer extends LeashedServer {
  readonly address: string;
}

// One node needs one partition per queue, and the transfer queue polled often: 13 instead of 95 ms per activity.
const dynamicConfig = [
  'matching.numTaskqueueReadPartitions=1',
  'matching.numTaskqueueWritePartitions=1',
  'history.transferProcessorMaxPollRPS=1000',
  'matching.enableFairness=true',
  'system.namespaceCacheRefreshInterval="1s"',
];

/** Temporal's own development server on 127.0.0.1, answering. Errors: it ends while starting, or does not answer in 60 s. */
export async function startTemporalServer(options: TemporalServerOptions): Promise<TemporalServer> {
  const { port, uiPort, dbFile } = options;
  const server = await startLeashed({
    command: options.binary,
    args: ['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--http-port', String(options.httpPort),
      '--metrics-port', String(options.metricsPort), ...(uiPort === null ? ['--headless'] : ['--ui-port', String(uiPort)]),
      ...(dbFile === null ? [] : ['--db-filename', dbFile, '--sqlite-pragma', 'journal_mode=wal', '--sqlite-pragma', 'synchronous=normal']),
      ...dynamicConfig.flatMap((value) => ['--dynamic-config-value', value]),
      ...(options.namespaces ?? []).flatMap((name) => ['--namespace', name]),
      ...(options.searchAttributes ?? []).flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
      '--log-level', 'warn'],
    stopSignal: 'TERM',
    logFile: options.logFile,
    ...(options.removeAfterwards ? { removeAfterwards: options.removeAfterwards } : {}),
  });
  options.onSpawn?.(server);
  const address = `127.0.0.1:${port}`;
  await untilServing(server, address, options.logFile);
  return Object.assign(server, { address });
}

async function untilServing(server: LeashedServer, address: string, logFile: string): Promise<void> {
  for (let attempt = 0; server.running && attempt < 1200; attempt += 1) {
    const connection = Connection.lazy({ address });
    try {
      await connection.withDeadline(Date.now() + 1_000, () => connection.workflowService.getSystemInfo({}));
      return;
    } catch {
      await pause(50);
    } finally {
      await connection.close();
    }
  }
  const last = (await readFile(logFile, 'utf8').catch(() => '')).trimEnd().split('\n').slice(-5).join('\n');
  await server.stop(1_000);
  throw new Error(`Temporal did not start. Its last lines (${logFile}):\n${last}`);
}

import { startPostgresHost } from '../../src/edge/postgres/host/host';
import { silent } from './postgres-host';

// The instance host alone in a process, for tests that kill it.
startPostgresHost(JSON.parse(process.argv[2] ?? ''), silent).then(
  () => process.send?.('ready'),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);

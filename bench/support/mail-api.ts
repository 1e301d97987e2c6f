import { loadConfig } from '../../src/config';
import { listen } from '../../src/core/listen';
import { openApi, openCore } from '../../src/deps';
import { routes } from '../../src/http/routes';
import { createApp, createHttpServer } from '../../src/http/server';

/** The API as its process composes it, for benchmarks that bring a database and need no set-up. Tells its parent where it listens. */
async function main(): Promise<void> {
  const core = openCore(loadConfig(), 'api');
  const server = createHttpServer(createApp(openApi(core), routes));
  const address = await listen(server, '127.0.0.1:0');
  process.send?.({ url: `http://${address}` });
  process.on('SIGTERM', () => process.exit(0));
}

void main();

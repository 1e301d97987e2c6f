import { TestServers } from './servers';

declare global {
  var holdfastTestServers: TestServers | undefined;
}

/** Runs once, in jest's own process; test files find the servers through the address left in the environment. */
export default async function globalSetup(): Promise<void> {
  const servers = new TestServers();
  globalThis.holdfastTestServers = servers;
  process.env['HOLDFAST_TEST_SERVERS'] = await servers.listen();
}

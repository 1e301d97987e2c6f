import type { Config } from '../../config';
import { parseAddress } from '../../core/listen';
import type { DnsResolver } from '../../dns/ports';
import { IterativeResolver } from './iterative';
import { rootHints } from './root-hints';
import type { Stub } from './routes';

const resolverTimeoutMs = 1_500;

/** From the root hints down. Our own servers are asked where they listen, `test` where the development registry does. */
export function resolverOf(config: Config): DnsResolver {
  const own = config.DNS_SERVERS.flatMap(({ addresses, port }) => addresses.map((address) => ({ address, port })));
  return new IterativeResolver({
    rootHints: config.DNS_ROOT_HINTS ?? rootHints, port: config.DNS_RESOLVER_PORT, allowNonGlobal: config.DNS_ALLOW_NON_GLOBAL, own: own.map(({ address }) => address), ownServers: own,
    stubs: config.DNS_TEST_SERVERS ? [testStub(config.DNS_TEST_SERVERS)] : [], timeoutMs: resolverTimeoutMs, nowMs: Date.now,
  });
}

/** Its loopback addresses are allowed for names under `test` alone. All of them have one port. */
function testStub(texts: readonly string[]): Stub {
  const servers = texts.map(parseAddress);
  return { suffix: 'test', servers: servers.map(({ host }, i) => ({ name: `${String.fromCharCode(97 + i)}.nic.test`, address: host })), port: servers[0]?.port ?? 53, addresses: servers.map(({ host }) => host) };
}

import type { SupervisorConfig } from '../config';
import { parseAddress } from '../core/listen';
import { anyFreePort, canListen, type PortClaims } from './ports';
import { registryNetwork } from './registry/registry';

/** Where everything of this installation listens, settled before anything is started and handed to every process. */
export interface Addresses {
  readonly api: { host: string; port: number };
  readonly database: number;
  readonly temporal: { port: number; uiPort: number; httpPort: number; metricsPort: number };
  readonly dns: readonly { host: string; port: number }[];
  /** Of the registry for `test`; null where its loopback addresses do not exist. */
  readonly registry: { hosts: readonly string[]; port: number } | null;
  readonly gateway: Readonly<Record<'http' | 'https' | 'admin', { host: string; port: number }>>;
  readonly postgresGateway: readonly { host: string; port: number }[];
  /** Of the report intake; null when it is off. */
  readonly smtp: { host: string; port: number } | null;
  /** `METRICS_ADDR` of each process of ours. */
  readonly metrics: ReadonlyMap<string, string>;
}

/** The configured ports, or for each that is in use the next free one, which is said. */
export async function claimAddresses(config: SupervisorConfig, claims: PortClaims, processes: readonly string[], say: (text: string) => void): Promise<Addresses> {
  const claim = async (what: string, wanted: number, hosts?: readonly string[]) => {
    const port = await claims.claim(wanted, hosts);
    if (port !== wanted) say(`Port ${wanted} is in use: ${what} listens on ${port}.`);
    return port;
  };
  const api = parseAddress(config.API_ADDR);
  const metrics = new Map<string, string>();
  const metricsAt = parseAddress(config.METRICS_ADDR);
  for (const [index, name] of processes.entries()) {
    metrics.set(name, formatAddress({ ...metricsAt, port: await claims.claim(metricsAt.port + index, [metricsAt.host]) }));
  }
  return {
    api: { host: api.host, port: await claim('the API', api.port, [api.host]) },
    database: config.DATABASE_URL ? config.DATABASE_PORT : await claim('the database', config.DATABASE_PORT),
    temporal: config.TEMPORAL_ADDRESS ? { port: 0, uiPort: 0, httpPort: 0, metricsPort: 0 } : {
      port: await claim('Temporal', config.TEMPORAL_PORT),
      uiPort: await claim("Temporal's UI", config.TEMPORAL_UI_PORT),
      httpPort: await anyFreePort(),
      metricsPort: await anyFreePort(),
    },
    dns: await claimTogether(config.DNS_LISTEN, 'DNS', claim),
    registry: await claimRegistry(config.DNS_REGISTRY_PORT, claim),
    gateway: {
      http: await claimOne(config.GATEWAY_HTTP_ADDR, 'the security gateway (HTTP)', claim),
      https: await claimOne(config.GATEWAY_HTTPS_ADDR, 'the security gateway (HTTPS)', claim),
      admin: await claimOne(config.GATEWAY_ADMIN_ADDR, "the security gateway's admin address", claim),
    },
    postgresGateway: await claimTogether(config.PG_GATEWAY_ADDR, 'the Postgres gateway', claim),
    smtp: config.MAIL_INBOUND_ENABLED === false ? null : { host: config.MAIL_INBOUND_HOST, port: await claim('the report intake', config.MAIL_INBOUND_PORT, [config.MAIL_INBOUND_HOST]) },
    metrics,
  };
}

async function claimOne(text: string, what: string, claim: (what: string, wanted: number, hosts: readonly string[]) => Promise<number>): Promise<{ host: string; port: number }> {
  const { host, port } = parseAddress(text);
  return { host, port: await claim(what, port, [host]) };
}

/** Addresses with one port keep one port (127.0.0.1 and ::1 are one server to a client); an address this machine lacks is left out. */
async function claimTogether(texts: readonly string[], what: string, claim: (what: string, wanted: number, hosts: readonly string[]) => Promise<number>) {
  const wanted = texts.map(parseAddress);
  const usable = (await Promise.all(wanted.map(async (address) => ((await canListen(address.host)) ? [address] : [])))).flat();
  const result: { host: string; port: number }[] = [];
  for (const port of new Set(usable.map((address) => address.port))) {
    const hosts = usable.filter((address) => address.port === port).map((address) => address.host);
    const claimed = await claim(what, port, hosts);
    result.push(...hosts.map((host) => ({ host, port: claimed })));
  }
  if (result.length === 0) throw new Error(`This machine has none of the addresses of ${what} (${texts.join(', ')}).`);
  return result;
}

async function claimRegistry(wanted: number, claim: (what: string, wanted: number, hosts: readonly string[]) => Promise<number>): Promise<Addresses['registry']> {
  const hosts = [1, 2, 3].map((host) => `${registryNetwork}.${host}`);
  const usable = await Promise.all(hosts.map(canListen));
  return usable.includes(false) ? null : { hosts, port: await claim('the registry', wanted, hosts) };
}

export function formatAddress({ host, port }: { host: string; port: number }): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

import type { Config } from '../config';
import { namesOf } from './rules';
import type { PublicGateway } from './service';
import type { Trust } from './view';

type GatewayConfig = Pick<Config, 'PG_GATEWAY_ADDR' | 'PG_GATEWAY_DOMAIN' | 'PG_GATEWAY_CERT_FILE'>;
/** The installation's own authority: its certificate, and the file clients of this machine find it in. */
export type Authority = { certificate: () => Promise<string>; file: string };
/** How customers of a registered server know it; null when it is none. */
export type TrustOfServer = (hostId: string) => Promise<Trust | null>;

/** Where the Postgres gateway is reached, from configuration alone: known before an instance exists and after a port has moved. */
export function createPublicGateway(config: GatewayConfig, authority: Authority, trustOfServer: TrustOfServer = async () => null): PublicGateway {
  const loopback = config.PG_GATEWAY_ADDR.every((address) => /^(127\.|localhost:|\[::1\]:)/.test(address));
  let trust: Promise<Trust> | undefined;
  return {
    addressOf: ({ id, region, host, port: ownPort, isolation }) => {
      if (host !== null || isolation === 'database') return { host, port: ownPort };
      return gatewayAddress(config, namesOf(id).label, region);
    },
    trust: async ({ isolation, hostId }) => {
      if (isolation === 'database') return (hostId === null ? null : await trustOfServer(hostId)) ?? unplaced;
      trust ??= trustOf(config, authority, loopback);
      trust.catch(() => {
        trust = undefined;
      });
      return trust;
    },
  };
}

/** Nothing is known yet of a server that is still to be chosen. */
const unplaced: Trust = { sslmode: 'verify-full', caCertificate: null, rootCertPath: null };

/** The gateway's address for a service: its own host name below the gateway's domain, else localhost. */
export function gatewayAddress({ PG_GATEWAY_ADDR: [first = ''], PG_GATEWAY_DOMAIN: domain }: GatewayConfig, label: string, region: string): { host: string; port: number } {
  return { host: domain ? `${label}.${region}.${domain}` : 'localhost', port: Number(first.slice(first.lastIndexOf(':') + 1)) };
}

/** Contract postgres.md §1.2: clients verify our own authority; an operator's public certificate they know already. */
async function trustOf(config: GatewayConfig, authority: Authority, loopback: boolean): Promise<Trust> {
  if (config.PG_GATEWAY_CERT_FILE) return { sslmode: 'require', caCertificate: null, rootCertPath: null };
  return { sslmode: 'verify-full', caCertificate: await authority.certificate(), rootCertPath: loopback ? authority.file : null };
}

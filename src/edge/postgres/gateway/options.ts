import { BlockList, isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Registry } from 'prom-client';
import type { Config } from '../../../config';
import type { Log } from '../../../core/log';
import type { Secrets } from '../../../core/secrets';
import type { Database } from '../../../db/client';
import { ensureInstallationCa } from '../../../db/installation-ca';
import type { Listener } from '../../../db/listen';
import { findRoute, loadRoutes } from '../../../postgres/store/routes';
import { postgresDirectories, type DirectoryConfig } from '../directories';
import type { GatewayOptions } from './gateway';

export type GatewayConfig = DirectoryConfig & Pick<Config, 'PG_GATEWAY_ADDR' | 'PG_GATEWAY_TLS' | 'PG_GATEWAY_DOMAIN' | 'PG_GATEWAY_CERT_FILE' | 'PG_GATEWAY_KEY_FILE' | 'PG_REGION'>;
export type GatewayDeps = { db: Database; listener: Listener; secrets: Secrets; registry: Registry; log: Log };

const routeChannel = 'postgres_route';

/** Errors: one sentence when TLS is optional on an address others can reach, or a certificate comes without its key. */
export function gatewayOptions(config: GatewayConfig, { db, listener, secrets, registry, log }: GatewayDeps): GatewayOptions {
  const directories = postgresDirectories(config);
  const { PG_GATEWAY_CERT_FILE: certificate, PG_GATEWAY_KEY_FILE: key } = config;
  if (Boolean(certificate) !== Boolean(key)) throw new Error('PG_GATEWAY_CERT_FILE and PG_GATEWAY_KEY_FILE go together.');
  const reachable = config.PG_GATEWAY_ADDR.find((address) => !isLoopback(address));
  if (config.PG_GATEWAY_TLS === 'optional' && reachable) throw new Error(`PG_GATEWAY_TLS=optional is for loopback addresses only, and the gateway listens on ${reachable}.`);
  return {
    addresses: config.PG_GATEWAY_ADDR,
    tlsRequired: config.PG_GATEWAY_TLS === 'required',
    certificate: {
      directory: join(directories.data, 'tls'),
      names: {
        dnsNames: ['localhost', ...(config.PG_GATEWAY_DOMAIN ? [`*.${config.PG_REGION}.${config.PG_GATEWAY_DOMAIN}`] : [])],
        ipAddresses: ['127.0.0.1', '::1'],
      },
      files: certificate && key ? { certificate, key } : null,
      authority: () => ensureInstallationCa(db.prisma, secrets),
    },
    routes: {
      load: () => loadRoutes(db.prisma),
      find: (name) => findRoute(db.prisma, name),
      listen: (changed) => listener.listen(routeChannel, changed),
    },
    runDir: directories.run,
    registry,
    log,
  };
}

function isLoopback(address: string): boolean {
  const host = address.slice(0, address.lastIndexOf(':')).replace(/^\[|\]$/g, '');
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8, 'ipv4');
  loopback.addAddress('::1', 'ipv6');
  return host === 'localhost' || loopback.check(host, isIPv6(host) ? 'ipv6' : 'ipv4');
}

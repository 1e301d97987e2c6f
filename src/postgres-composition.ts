import { BackendByHost } from './adapters/postgres-backend/by-host';
import { EmbeddedBackend } from './adapters/postgres-backend/embedded';
import { HostPoolBackend } from './adapters/postgres-backend/host-pool/backend';
import { ensureInstallationCa } from './db/installation-ca';
import type { CoreDeps } from './deps';
import { authorityFile, postgresDirectories } from './edge/postgres/directories';
import type { PostgresBackend } from './postgres/ports';
import { createPublicGateway, gatewayAddress } from './postgres/public-gateway';
import { openServer, trustOfServer } from './postgres/registered-servers';
import type { PublicGateway } from './postgres/service';
import { findBackendOf } from './postgres/store/hosts';

/** New services go where PG_BACKEND says, every other call to the backend of the service's own host, which never changes. */
export function postgresBackendOf({ config, db, secrets }: CoreDeps): PostgresBackend {
  const embedded = new EmbeddedBackend({ runDir: postgresDirectories(config).run, publicAddress: ({ label }) => gatewayAddress(config, label, config.PG_REGION) });
  const registered = new HostPoolBackend({ find: (name) => openServer({ db, secrets }, name) });
  const known = new Map<string, PostgresBackend>();
  return new BackendByHost({
    chosen: config.PG_BACKEND === 'host_pool' ? registered : embedded, keeper: embedded,
    of: async (hostId) => {
      const backend = known.get(hostId) ?? (await findBackendOf(db.prisma, hostId) === 'host_pool' ? registered : embedded);
      known.set(hostId, backend);
      return backend;
    },
  });
}

/** Clients check the Postgres gateway with the installation's own authority; the edge process writes it to this file. */
export function publicGatewayOf({ config, db, secrets }: CoreDeps): PublicGateway {
  return createPublicGateway(config, {
    certificate: async () => (await ensureInstallationCa(db.prisma, secrets)).certificate, file: authorityFile(postgresDirectories(config)),
  }, (hostId) => trustOfServer(db, hostId));
}

import { watchFile, unwatchFile } from 'node:fs';
import { join } from 'node:path';
import { loadConfig, type Config } from '../config';
import { createLog } from '../core/log';
import { createMetrics } from '../core/metrics';
import { serveMetrics } from '../core/metrics-server';
import { announceReady, onShutdown, runProcess } from '../core/process';
import { readDelegations, registryFile } from '../dev/registry/delegations';
import { platformDelegations, Registry, registryNetwork } from '../dev/registry/registry';
import { platformOf } from '../dns/rules/platform';

const lookEveryMs = 100;

/** The registry of `npm start`: a name server for the TLD `test` that delegates what `npm run registry` has written down, and our own suffixes. */
async function main(config: Config): Promise<void> {
  const log = createLog('registry', config.LOG_LEVEL);
  const file = join(config.HOLDFAST_DATA_DIR, registryFile);
  const ours = platformDelegations(platformOf(config));
  const registry = await Registry.start({ network: registryNetwork, port: config.DNS_REGISTRY_PORT, log });
  const follow = async (): Promise<void> => {
    const held = await readDelegations(file);
    if (held) registry.publish(held.serial, [...ours, ...held.delegations]);
    else registry.publish(1, ours);
  };
  await follow();
  watchFile(file, { interval: lookEveryMs }, () => void follow().catch((error: unknown) => log.error({ err: error }, 'the registry keeps what it has')));
  const metrics = await serveMetrics(config.METRICS_ADDR, createMetrics('registry').registry, () => ({ ok: true }));
  onShutdown(async () => {
    unwatchFile(file);
    await Promise.all([metrics.close(), registry.close()]);
  });
  const servers = registry.tldServers.map(({ address }) => `${address}:${registry.port}`);
  log.info({ servers, metrics: metrics.address }, 'the registry answers for test');
  announceReady({ servers });
}

runProcess(async () => main(loadConfig()));

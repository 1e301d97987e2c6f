import { join } from 'node:path';
import { loadSupervisorConfig } from '../config';
import { registryFile } from '../dev/registry/delegations';
import { registryCommand } from '../dev/registry/command';
import { readFileIfAny } from '../core/files';

/** `npm run registry -- …`: plays the registrar of the development registry. */
async function main(args: readonly string[]): Promise<void> {
  const { config } = loadSupervisorConfig();
  const running = await readFileIfAny(join(config.HOLDFAST_DATA_DIR, 'dev.json'));
  const lines = await registryCommand(args, { file: join(config.HOLDFAST_DATA_DIR, registryFile), suffixes: [config.DNS_NAMESERVER_SUFFIX, config.DNS_EDGE_SUFFIX], running });
  process.stdout.write(`${lines.join('\n')}\n`);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\nnpm run registry -- --help says what can be done.\n`);
  process.exitCode = 1;
});

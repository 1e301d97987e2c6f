import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { createDeliveryActivities } from '../../activities/mail/delivery';
import { loadConfig } from '../../src/config';
import { openCore, openWorker } from '../../src/deps';
import type { MailTransport, TransportJob } from '../../src/mail/ports';
import { bundledWorkflows } from './workflow-lab';

/**
 * A worker of the queue `mail-delivery` that the test kills: `HALTS` says at which recipient it stands still, when it is taken
 * (`claimed`), when the server has said 250 (`sent`) or when that is written (`written`); it tells its parent when it does.
 */
const halts: Readonly<Record<string, 'claimed' | 'sent' | 'written'>> = JSON.parse(process.env['HALTS'] ?? '{}');

function halt(recipient: string): Promise<never> {
  process.send?.({ halted: recipient });
  return new Promise(() => undefined);
}

function halting(transport: MailTransport): MailTransport {
  return {
    name: transport.name, acceptedMeans: transport.acceptedMeans, close: () => transport.close(),
    async send(job: TransportJob, signal: AbortSignal) {
      if (halts[job.recipient] === 'claimed') return halt(job.recipient);
      const result = await transport.send(job, signal);
      return halts[job.recipient] === 'sent' ? halt(job.recipient) : result;
    },
  };
}

async function main(): Promise<void> {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const config = loadConfig();
  const deps = openWorker(openCore(config, 'worker'));
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address: config.TEMPORAL_ADDRESS }), namespace: config.TEMPORAL_NAMESPACE, taskQueue: 'mail-delivery', workflowBundle: await bundledWorkflows(),
    activities: createDeliveryActivities({
      ...deps, mailTransports: { ...deps.mailTransports, live: halting(deps.mailTransports.live) },
      resultWriter: { write: async (result) => {
        await deps.resultWriter.write(result);
        const { address } = result.claimed.recipient;
        if (halts[address] === 'written') await halt(address);
      } },
    }),
  });
  process.send?.({ ready: true });
  await worker.run();
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});

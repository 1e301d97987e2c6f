/**
 * From the first request to the last mail at a local sink: 10,000 mails of 5 KiB, DKIM on, smtp_relay, the whole product as
 * `npm start` runs it. The sink takes everything at once. Targets 350/s and 1.1 × Haraka without DKIM (317/s on this kind of
 * machine); Postfix without DKIM did 663/s. COUNT and SECONDS make it shorter.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { Secrets } from '../src/core/secrets';
import { createMailTenant } from '../test/support/mail-delivery';
import { Product } from '../test/support/product';
import { print } from './support/database';
import { shoot } from './support/http-load';

const count = Number(process.env['COUNT'] ?? 10_000);
const giveUpMs = Number(process.env['SECONDS'] ?? 300) * 1_000;

async function main(): Promise<void> {
  const sink = await startSink();
  const product = await Product.start({
    MAIL_TRANSPORT: 'smtp_relay', MAIL_RELAY_URL: `smtp://127.0.0.1:${sink.port}`, MAIL_RELAY_TLS: 'off', PENDING_OPERATIONS_MAX: '10000000', LOG_LEVEL: 'warn',
  });
  try {
    const { HOLDFAST_MASTER_KEY = '' } = await product.environment();
    const tenant = await createMailTenant(product.database, product.tenant, { ceiling: null, sendsPerSecond: 1_000_000, secrets: new Secrets([HOLDFAST_MASTER_KEY]) });
    const startedAt = performance.now();
    const body = JSON.stringify({ from: `Acme <a@${tenant.domain}>`, to: ['x@y.org'], subject: 'Hello', text: `${'x'.repeat(70)}\n`.repeat(72) });
    const accepted = await shoot({
      url: `${product.file.apiUrl}/v1/api/mail/send`, body, headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' }, connections: 32, seconds: count / 1_000, perSecond: 1_000,
    });
    while (sink.messages.size < count && performance.now() - startedAt < giveUpMs) await new Promise((resolve) => setTimeout(resolve, 50));
    const seconds = (performance.now() - startedAt) / 1_000;
    print(`accepted ${accepted.perSecond.toFixed(0)}/s, p99 ${accepted.p99Ms.toFixed(0)} ms, not 202: ${accepted.others}`);
    print(`end to end ${(sink.messages.size / seconds).toFixed(0)} mails/s: ${sink.messages.size} of ${count} in ${seconds.toFixed(1)} s, duplicates ${sink.received - sink.messages.size}, unsigned ${sink.unsigned}   (target 350/s)`);
  } finally {
    await product.stop();
    await sink.stop();
  }
}

type Sink = { port: number; messages: Set<string>; received: number; unsigned: number; stop(): Promise<void> };

/** Takes every mail and counts it by its Message-ID. */
async function startSink(): Promise<Sink> {
  const counted = { messages: new Set<string>(), received: 0, unsigned: 0 };
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'], hideENHANCEDSTATUSCODES: false, logger: false,
    onData(stream, _session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => {
        const head = Buffer.concat(chunks).toString('latin1', 0, 4_000);
        counted.received += 1;
        if (!/^DKIM-Signature:/im.test(head)) counted.unsigned += 1;
        counted.messages.add(/^Message-ID: (\S+)/im.exec(head)?.[1] ?? '');
        done();
      });
    },
  });
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  return Object.assign(counted, {
    port: (server.server.address() as AddressInfo).port,
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  });
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

/**
 * From the first request to the last mail at a local sink: 10,000 mails of 5 KiB, DKIM on, smtp_relay, the whole product as
 * `npm start` runs it; then Haraka and Postfix without DKIM, fed over SMTP, with the same sink. The sink takes everything at
 * once. Targets: 350/s and 1.1 × Haraka. COUNT and SECONDS make it shorter, RUNS changes the three of which the median counts.
 */
import { measurePeer, withMailPeers } from './peers/mail';
import { median, print } from './support/database';
import { sendMails, startMailProduct, waitFor } from './support/mail-load';
import { MailSink } from './support/mail-sink';

const count = Number(process.env['COUNT'] ?? 10_000);
const runs = Number(process.env['RUNS'] ?? 3);
const giveUpMs = Number(process.env['SECONDS'] ?? 300) * 1_000;

async function main(): Promise<void> {
  const sink = await MailSink.start();
  const rates: number[] = [];
  const { product, tenant } = await startMailProduct(sink);
  try {
    for (let run = 0; run < runs; run++) {
      sink.clear();
      const startedAt = performance.now();
      const { accepted, seconds } = await sendMails({ url: product.file.apiUrl, tenant, count, connections: 32, perSecond: 1_000 });
      await waitFor(() => sink.mails >= accepted.length, giveUpMs);
      rates.push(sink.mails / ((performance.now() - startedAt) / 1_000));
      print(`run ${run + 1}: ${rates.at(-1)?.toFixed(0)} mails/s end to end, accepted ${(accepted.length / seconds).toFixed(0)}/s; at the sink ${sink.mails} of ${accepted.length}, duplicates ${sink.duplicates}, unsigned ${sink.unsigned}`);
    }
  } finally {
    await product.stop();
  }
  print(`ours, DKIM on: median ${median(rates).toFixed(0)} mails/s   (target 350/s)`);
  await withMailPeers(sink, print, async (name, peer) => {
    const { deliveredPerSecond, acceptedPerSecond, mails } = await measurePeer(peer, sink, { count, giveUpMs });
    print(`${name}, no DKIM: ${deliveredPerSecond.toFixed(0)} mails/s end to end, accepted ${acceptedPerSecond.toFixed(0)}/s; at the sink ${mails} of ${count}; ours ${(median(rates) / deliveredPerSecond).toFixed(2)} times`);
  });
  await sink.stop();
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

/**
 * From the 202 to the first byte of the mail at the sink, at 50 mails a second: the whole product, DKIM on, smtp_relay. Once
 * with the starts a second that are set by default, once with as many as mails come. Target: p50 50 ms, p99 250 ms.
 * SECONDS changes the 20 it lasts.
 */
import { print, quantile } from './support/database';
import { sendMails, startMailProduct, waitFor } from './support/mail-load';
import { MailSink } from './support/mail-sink';

const perSecond = 50;
const seconds = Number(process.env['SECONDS'] ?? 20);

async function measure(name: string, env: Record<string, string>): Promise<void> {
  const sink = await MailSink.start();
  const { product, tenant } = await startMailProduct(sink, env);
  try {
    await sendMails({ url: product.file.apiUrl, tenant, count: 50, connections: 8, perSecond: 25 });
    await waitFor(() => sink.mails >= 50, 30_000);
    const { accepted } = await sendMails({ url: product.file.apiUrl, tenant, count: perSecond * seconds, connections: 32, perSecond });
    await waitFor(() => sink.mails >= accepted.length + 50, 60_000);
    const waits = accepted.flatMap(({ messageId, at }) => {
      const came = sink.firstByteAt.get(`<${messageId}@${tenant.domain}>`);
      return came === undefined ? [] : [Math.max(0, came - at)];
    });
    print(`${name}: p50 ${quantile(waits, 0.5).toFixed(1)} ms, p99 ${quantile(waits, 0.99).toFixed(1)} ms, ${waits.length} of ${accepted.length} mails   (target p50 50, p99 250 ms)`);
  } finally {
    await product.stop();
    await sink.stop();
  }
}

async function main(): Promise<void> {
  await measure('default starts', {});
  await measure('60 starts a second', { MAIL_API_STARTS_PER_SECOND: '60', MAIL_RELAY_STARTS_PER_SECOND: '60' });
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

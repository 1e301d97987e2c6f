/**
 * The same mails to a sink that refuses 10 % for now and 5 % for good, and answers after 200 ms: how fast every mail has had its
 * first attempt, beside the same count to a friendly sink in the same run. Target: 60 % of that; every mail accounted for.
 * COUNT and SECONDS make it shorter.
 */
import type { Product } from '../test/support/product';
import { print } from './support/database';
import { sendMails, startMailProduct, waitFor } from './support/mail-load';
import { MailSink } from './support/mail-sink';

const count = Number(process.env['COUNT'] ?? 10_000);
const giveUpMs = Number(process.env['SECONDS'] ?? 300) * 1_000;

async function main(): Promise<void> {
  const sink = await MailSink.start();
  // An answer after 200 ms holds a connection that long: 350/s need 70 of them.
  const { product, tenant } = await startMailProduct(sink, { MAIL_RELAY_CONNECTIONS: '200' });
  try {
    const rate = async (): Promise<number> => {
      sink.clear();
      await product.database.pool.query('delete from mail_message where mail_service_id = $1', [tenant.serviceId]);
      const startedAt = performance.now();
      const { accepted } = await sendMails({ url: product.file.apiUrl, tenant, count, connections: 32, perSecond: 1_000 });
      await waitFor(async () => await tried(product, tenant.serviceId) >= accepted.length, giveUpMs);
      const perSecond = accepted.length / ((performance.now() - startedAt) / 1_000);
      const fates = await fatesOf(product, tenant.serviceId);
      const known = Object.values(fates).reduce((sum, n) => sum + n, 0);
      print(`${sink.mood ? 'hostile ' : 'friendly'} first attempts ${perSecond.toFixed(0)}/s; accepted ${accepted.length}, accounted for ${known}: ${JSON.stringify(fates)}; at the sink ${sink.mails}, duplicates ${sink.duplicates}, refused for now ${sink.refusedForNow}, for good ${sink.refusedForGood}`);
      return perSecond;
    };
    const friendly = await rate();
    sink.mood = { later: 0.1, never: 0.05, delayMs: 200 };
    const hostile = await rate();
    print(`hostile / friendly: ${(hostile / friendly).toFixed(2)}   (target 0.6)`);
  } finally {
    await product.stop();
    await sink.stop();
  }
}

async function tried(product: Product, serviceId: string): Promise<number> {
  const { rows: [row] } = await product.database.pool.query<{ n: number }>(`select count(*)::int as n from mail_recipient where mail_service_id = $1 and attempt_no > 0 and status <> 'sending'`, [serviceId]);
  return row?.n ?? 0;
}

async function fatesOf(product: Product, serviceId: string): Promise<Record<string, number>> {
  const { rows } = await product.database.pool.query<{ status: string; n: number }>('select status, count(*)::int as n from mail_recipient where mail_service_id = $1 group by status order by status', [serviceId]);
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

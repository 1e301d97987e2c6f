/**
 * 10,000 mails while API and worker are killed (SIGKILL) at random and started again by the supervisor: every mail that was
 * acknowledged must be at the sink, and copies may be at most as many as attempts were in flight at the kills. COUNT makes it shorter,
 * KILLS changes how many. The client repeats what was not acknowledged under the same Idempotency-Key.
 */
import type { Product } from '../test/support/product';
import { print } from './support/database';
import { sendMails, startMailProduct, waitFor } from './support/mail-load';
import { MailSink } from './support/mail-sink';

const count = Number(process.env['COUNT'] ?? 10_000);
const kills = Number(process.env['KILLS'] ?? 6);
const giveUpMs = Number(process.env['SECONDS'] ?? 600) * 1_000;

async function main(): Promise<void> {
  const sink = await MailSink.start();
  const { product, tenant } = await startMailProduct(sink);
  try {
    const startedAt = performance.now();
    const sending = sendMails({ url: product.file.apiUrl, tenant, count, connections: 16, perSecond: 250, insist: true });
    let done = false;
    void sending.finally(() => { done = true; });
    let inFlight = 0;
    for (let i = 0; i < kills; i++) {
      await waitFor(() => done || sink.mails >= ((i + 0.3 + Math.random() * 0.6) / kills) * count * 0.9, giveUpMs);
      const name = i % 2 === 0 ? 'worker' : 'api';
      const held = name === 'worker' ? await attemptsInFlight(product) : 0;
      inFlight += held;
      const { processes } = await product.clone.until((file) => file.processes.some((one) => one.name === name));
      process.kill(processes.find((one) => one.name === name)?.pid ?? 0, 'SIGKILL');
      print(`killed ${name} with ${sink.mails} mails at the sink and ${held} attempts in flight`);
    }
    const { accepted } = await sending;
    const all = await waitFor(() => accepted.every(({ messageId }) => sink.copies.has(`<${messageId}@${tenant.domain}>`)), giveUpMs);
    const lost = accepted.filter(({ messageId }) => !sink.copies.has(`<${messageId}@${tenant.domain}>`)).length;
    print(`acknowledged ${accepted.length}, lost ${lost}${all ? '' : ' (time was up)'}, duplicates ${sink.duplicates}, attempts in flight at the kills ${inFlight}, in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s   (target: 0 lost; duplicates at most those in flight)`);
  } finally {
    await product.stop();
    await sink.stop();
  }
}

async function attemptsInFlight(product: Product): Promise<number> {
  const { rows: [row] } = await product.database.pool.query<{ n: number }>(`select count(*)::int as n from mail_recipient where status = 'sending'`);
  return row?.n ?? 0;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

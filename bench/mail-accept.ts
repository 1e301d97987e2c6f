/**
 * The 202 of a send after its durable commit, over HTTP: the peak of 64 connections, then 300 a second. The API process is the
 * product's own composition in a process of its own; Temporal is away, so nothing but accepting is measured. 5 KiB mails, one
 * recipient, rate limits raised. The load is made in this process. Then Haraka and Postfix, which accept the same mails over
 * SMTP on 20 connections; PEERS=0 leaves them out.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createMailTenant } from '../test/support/mail-delivery';
import { createTenant } from '../test/support/tenant';
import { Secrets } from '../src/core/secrets';
import type { Database } from '../src/db/client';
import { measurePeer, withMailPeers } from './peers/mail';
import { print, withBenchDatabase } from './support/database';
import { shoot as fire, type Load } from './support/http-load';
import { MailSink } from './support/mail-sink';

const seconds = Number(process.env['SECONDS'] ?? 10);
const runs = Number(process.env['RUNS'] ?? 3);
const masterKey = Buffer.alloc(32, 7).toString('base64');

async function measure(database: Database): Promise<void> {
  const tenant = await createMailTenant(database, await createTenant(database, 'secret'), { ceiling: null, sendsPerSecond: 1_000_000, secrets: new Secrets([masterKey]) });
  const api = await startApi(database.pool.options.connectionString ?? '');
  try {
    const body = JSON.stringify({ from: `Acme <a@${tenant.domain}>`, to: ['x@y.org'], subject: 'Hello', text: `${'x'.repeat(70)}\n`.repeat(72) });
    const shoot = (load: Pick<Load, 'connections'> & Partial<Load>) => fire({
      url: `${api.url}/v1/api/mail/send`, body, headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' }, seconds, ...load,
    });
    const medianOf = async (load: Parameters<typeof shoot>[0]) => {
      const shots = [];
      for (let run = 0; run < runs; run++) shots.push(await shoot(load));
      return shots.toSorted((x, y) => x.p99Ms - y.p99Ms)[Math.floor(runs / 2)];
    };
    await shoot({ connections: 16, seconds: 3 });
    const peak = await medianOf({ connections: 64 });
    print(`peak     ${peak?.perSecond.toFixed(0)} accepted/s, p50 ${peak?.p50Ms.toFixed(1)} ms, p99 ${peak?.p99Ms.toFixed(1)} ms, not 202: ${peak?.others}   (target 1,000/s)`);
    const calm = await medianOf({ connections: 32, perSecond: 300 });
    print(`300/s    p50 ${calm?.p50Ms.toFixed(1)} ms, p99 ${calm?.p99Ms.toFixed(1)} ms, ${calm?.perSecond.toFixed(0)}/s, not 202: ${calm?.others}   (target p50 5 ms, p99 25 ms)`);
    const { rows: [row] } = await database.pool.query<{ messages: string; counted: string }>(`select (select count(*) from mail_message) as messages, (select recipients from mail_usage) as counted`);
    print(`stored   ${row?.messages} messages, ${row?.counted} recipients counted`);
  } finally {
    api.child.kill('SIGTERM');
    await once(api.child, 'exit');
  }
}

/** The API alone, on a free port. */
async function startApi(databaseUrl: string): Promise<{ url: string; child: ChildProcess }> {
  const child = fork(require.resolve('./support/mail-api'), [], {
    env: {
      ...process.env, HOLDFAST_MODE: 'development', HOLDFAST_MASTER_KEY: masterKey, AUTH_SECRET: 'a secret of the benchmark that is long', DATABASE_URL: databaseUrl, LOG_LEVEL: 'warn',
      TEMPORAL_ADDRESS: '127.0.0.1:1', MAIL_API_STARTS_PER_SECOND: '0', PENDING_OPERATIONS_MAX: '10000000', PENDING_OPERATIONS_AGE_SECONDS: '86400',
    },
  });
  const [message] = await once(child, 'message') as [{ url: string }];
  return { url: message.url, child };
}

async function main(): Promise<void> {
  await withBenchDatabase(measure);
  if (process.env['PEERS'] === '0') return;
  const sink = await MailSink.start();
  await withMailPeers(sink, print, async (name, peer) => {
    const { acceptedPerSecond, p50Ms, p99Ms } = await measurePeer(peer, sink, { count: Math.round(seconds * 300), giveUpMs: 120_000 });
    print(`${name}: ${acceptedPerSecond.toFixed(0)} accepted/s, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`);
  });
  await sink.stop();
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

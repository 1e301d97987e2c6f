/**
 * A page of 25 of a service's 1,000,000 messages over HTTP: the newest, those of a common and of a rare status, the pages behind a
 * deep cursor, and of one recipient. Each request alone on its connection. Target: p99 20 ms. COUNT makes it smaller.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { Secrets } from '../src/core/secrets';
import type { Database } from '../src/db/client';
import { createMailTenant } from '../test/support/mail-delivery';
import { createTenant } from '../test/support/tenant';
import { print, quantile, withBenchDatabase } from './support/database';

const count = Number(process.env['COUNT'] ?? 1_000_000);
const requests = Number(process.env['RUNS'] ?? 300);
const masterKey = Buffer.alloc(32, 7).toString('base64');

async function measure(database: Database): Promise<void> {
  const tenant = await createMailTenant(database, await createTenant(database, 'secret'), { ceiling: null, sendsPerSecond: 1_000_000, secrets: new Secrets([masterKey]) });
  await fill(database, tenant);
  const child = fork(require.resolve('./support/mail-api'), [], {
    env: { ...process.env, HOLDFAST_MODE: 'development', HOLDFAST_MASTER_KEY: masterKey, AUTH_SECRET: 'a secret of the benchmark that is long', DATABASE_URL: database.pool.options.connectionString ?? '', LOG_LEVEL: 'error', TEMPORAL_ADDRESS: '127.0.0.1:1' },
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const [message] = await once(child, 'message') as [{ url: string }];
    const page = (query: string) => get(`${message.url}/v1/api/mail/messages${query}`, tenant.key, agent);
    const line = async (name: string, queryOf: (previous: string | null) => string) => {
      const times: number[] = [];
      let cursor: string | null = null;
      for (let i = 0; i < requests + 20; i++) {
        const at = performance.now();
        const answer = await page(queryOf(cursor));
        if (i >= 20) times.push(performance.now() - at);
        cursor = answer.nextCursor;
      }
      print(`${name.padEnd(34)} p50 ${quantile(times, 0.5).toFixed(1)} ms, p99 ${quantile(times, 0.99).toFixed(1)} ms   (target p99 20 ms)`);
    };
    await line('newest', () => '');
    await line('status=delivered (90 %)', () => '?status=delivered');
    await line('status=complained (1 in 10,000)', () => '?status=complained');
    await line('status=bounced,deferred,failed', () => '?status=bounced,deferred,failed');
    let deep = (await page('?limit=100')).nextCursor;
    for (let i = 0; i < 200 && deep; i++) deep = (await page(`?limit=100&cursor=${deep}`)).nextCursor ?? deep;
    await line('behind a deep cursor, page by page', (previous) => `?limit=25&cursor=${previous ?? deep ?? ''}`);
    await line('of one recipient, one mail', () => `?recipient=r${Math.floor(count / 2)}@y.test`);
    await line('of one recipient, 1 % of all mail', () => '?recipient=often@y.test');
    const middle = new Date(Date.now() - 15 * 86_400_000).toISOString();
    await line('until the middle of the month', () => `?until=${middle}`);
  } finally {
    agent.destroy();
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
}

/** Messages of the last 30 days, evenly; one of a hundred goes to the same address, the others each to another. */
async function fill(database: Database, { serviceId, domainId, domain }: { serviceId: string; domainId: string; domain: string }): Promise<void> {
  const step = 50_000;
  for (let from = 0; from < count; from += step) {
    await database.pool.query(`
      insert into mail_message (id, mail_service_id, api_key_id, domain_id, mode, transport, status, parties, subject, has_text, has_html, size_bytes, rfc_message_id, recipient_count, counts, dispatched_at, settled_at, expires_at, created_at)
      select 'msg_' || lpad(i::text, 26, '0'), $1, 'key_x', $2, 'live', 'smtp_relay', s.status, json_build_object('from', json_build_object('name', 'Acme', 'address', 'a@' || $3::text), 'to', json_build_array(json_build_object('name', '', 'address', 'r' || i || '@y.test')), 'cc', '[]'::json, 'bcc', '[]'::json, 'replyTo', null),
        'Hello', true, false, 5000, '<' || i || '@x>', 1, jsonb_build_object(s.status, 1), now(), now(), now(), now() - (i::float8 / $6::float8) * interval '30 days'
      from generate_series($4::int, $5::int) i cross join lateral (select case when i % 10000 = 0 then 'complained' when i % 100 = 1 then 'failed' when i % 20 = 2 then 'bounced' when i % 33 = 3 then 'deferred' else 'delivered' end as status) s`,
    [serviceId, domainId, domain, from, Math.min(count, from + step) - 1, count]);
    await database.pool.query(`
      insert into mail_recipient (id, message_id, mail_service_id, position, kind, address, address_key, status, next_attempt_at)
      select 'rcp_' || lpad(i::text, 26, '0'), 'msg_' || lpad(i::text, 26, '0'), $1, 0, 'to', a.address, a.address, 'delivered', null
      from generate_series($2::int, $3::int) i cross join lateral (select case when i % 100 = 7 then 'often' else 'r' || i end || '@y.test' as address) a`,
    [serviceId, from, Math.min(count, from + step) - 1]);
  }
  for (const table of ['mail_message', 'mail_recipient']) await database.pool.query(`vacuum analyze ${table}`);
  print(`${count} messages`);
}

function get(url: string, key: string, agent: Agent): Promise<{ nextCursor: string | null }> {
  return new Promise((done, fail) => {
    request(url, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', fail).on('end', () => {
        const body: unknown = JSON.parse(Buffer.concat(chunks).toString());
        if (response.statusCode !== 200 || typeof body !== 'object' || body === null) return fail(new Error(`${response.statusCode}: ${JSON.stringify(body)}`));
        done({ nextCursor: 'nextCursor' in body && typeof body.nextCursor === 'string' ? body.nextCursor : null });
      });
    }).on('error', fail).end();
  });
}

void withBenchDatabase(measure);

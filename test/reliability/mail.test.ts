import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { Secrets } from '../../src/core/secrets';
import { createMailTenant, eventsOf, recipientsOf, type MailTenant } from '../support/mail-delivery';
import { Product } from '../support/product';
import { rounds } from '../support/rounds';
import { SmtpSink } from '../support/smtp-sink';

jest.setTimeout(rounds(300_000, 1_800_000));
let sink: SmtpSink;
let product: Product;
let tenant: MailTenant;
const workers: ChildProcess[] = [];

async function begin(env: Record<string, string>): Promise<void> {
  sink = await SmtpSink.start({ hideSTARTTLS: true });
  product = await Product.start({
    MAIL_TRANSPORT: 'smtp_relay', MAIL_RELAY_URL: `smtp://127.0.0.1:${sink.port}`, MAIL_RELAY_TLS: 'off', MAIL_RETRY_SCHEDULE_SECONDS: '1,1,2', LOG_LEVEL: 'error', ...env,
  });
  const { HOLDFAST_MASTER_KEY = '' } = await product.environment();
  tenant = await createMailTenant(product.database, product.tenant, { ceiling: null, sendsPerSecond: 100_000, secrets: new Secrets([HOLDFAST_MASTER_KEY]) });
}
async function end(): Promise<void> {
  for (const worker of workers.splice(0)) worker.kill('SIGKILL');
  await product?.stop();
  await sink?.close();
}

/** The message's id once a 202 was heard; asks again, with the same key, whatever else happens. */
async function send(recipient: string): Promise<string> {
  for (;;) {
    const answer = await fetch(`${product.file.apiUrl}/v1/api/mail/send`, {
      method: 'POST', headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json', 'idempotency-key': recipient },
      body: JSON.stringify({ from: `Acme <a@${tenant.domain}>`, to: [recipient], subject: 'Hello', text: 'Hi' }), signal: AbortSignal.timeout(20_000),
    }).catch(() => null);
    const body: unknown = answer?.status === 202 ? await answer.json().catch(() => null) : null;
    if (typeof body === 'object' && body !== null && 'messageId' in body) return String(body.messageId);
    await new Promise((done) => setTimeout(done, 50));
  }
}
/** As far as the database answers. */
const query = async (sql: string, ...values: unknown[]): Promise<Record<string, any>[] | null> => product.database.pool.query(sql, values).then(({ rows }) => rows, () => null);
/** Leases of workers that died end now: nobody has renewed them for half a minute. */
const endDeadLeases = (seconds = 90) => query(`update mail_recipient set lease_until = now() where status = 'sending' and lease_until < now() + $1 * interval '1 second'`, seconds);
async function eventually(condition: () => Promise<boolean>, what: string, seconds = rounds(150, 900)): Promise<void> {
  for (const deadline = performance.now() + seconds * 1_000; !await condition();) {
    if (performance.now() > deadline) throw new Error(`Waited in vain for ${what}:\n${product.clone.output.slice(-4_000)}`);
    await new Promise((done) => setTimeout(done, 250));
  }
}
const pidOf = async (name: string) => (await product.clone.until(({ processes }) => processes.some((one) => one.name === name))).processes.find((one) => one.name === name)?.pid ?? 0;
const allSettled = async (ids: readonly string[]) => (await query('select count(*)::int as n from mail_message where id = any($1) and settled_at is not null', ids))?.[0]?.['n'] === ids.length;

describe('killed at a point of a delivery', () => {
  beforeAll(() => begin({ WORKER_QUEUES: 'system,mail' }));
  afterAll(end);

  async function startWorker(halts: object, onHalt: (recipient: string) => void): Promise<ChildProcess> {
    const child = fork(resolve(__dirname, '../support/mail-worker-process.ts'), [], {
      execArgv: ['-r', resolve(__dirname, '../support/typescript.cjs')], stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...await product.environment(), LOG_LEVEL: 'error', HALTS: JSON.stringify(halts) },
    });
    workers.push(child);
    await new Promise<void>((done, fail) => {
      child.once('exit', (code) => fail(new Error(`The worker ended (${code}) before it was ready.`)));
      child.on('message', (message: unknown) => {
        if (typeof message === 'object' && message !== null && 'ready' in message) done();
        if (typeof message === 'object' && message !== null && 'halted' in message) onHalt(String(message.halted));
      });
    });
    return child;
  }
  async function kill(child: ChildProcess): Promise<void> {
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  test('before a start while Temporal is away, after it, when taken, in the conversation, after the 250, when written: nothing is lost, and a copy too many is marked', async () => {
    const temporal = await pidOf('temporal');
    process.kill(temporal, 'SIGSTOP');
    const unstarted = await send('unstarted@y.test');
    process.kill(await pidOf('api'), 'SIGKILL');
    process.kill(temporal, 'SIGCONT');
    const started = await send('started@y.test');

    sink.trouble.push({ at: 'rcpt', answer: 'hang', to: 'rcpt@y.test' }, { at: 'data', answer: 'hang', to: 'data@y.test' });
    const points = ['claimed', 'sent', 'written', 'rcpt', 'data'] as const;
    const halted = new Set<string>();
    const worker = await startWorker({ 'claimed@y.test': 'claimed', 'sent@y.test': 'sent', 'written@y.test': 'written' }, (recipient) => halted.add(recipient.split('@')[0] ?? ''));
    const ids = new Map(await Promise.all(points.map(async (point) => [point, await send(`${point}@y.test`)] as const)));
    await eventually(async () => new Set([...halted, ...sink.met.map(({ to }) => to?.split('@')[0])]).size === points.length, 'every point to be reached');
    await kill(worker);
    sink.trouble.length = 0;
    await endDeadLeases(1_000);
    const next = await startWorker({}, () => undefined);
    const all = [unstarted, started, ...ids.values()];
    await eventually(() => allSettled(all), 'every message to be settled');
    await kill(next);

    for (const id of all) expect(await recipientsOf(product.database, id)).toMatchObject([{ status: 'sent' }]);
    const copies = (point: string) => sink.mails.filter(({ to }) => to.includes(`${point}@y.test`)).length;
    expect(Object.fromEntries(['unstarted', 'started', ...points].map((point) => [point, copies(point)]))).toEqual({ unstarted: 1, started: 1, claimed: 1, sent: 2, written: 1, rcpt: 1, data: 1 });
    const told = async (point: (typeof points)[number]) => (await eventsOf(product.database, ids.get(point) ?? '')).map(({ type }) => type);
    expect(await told('written')).toEqual(['sent']);
    for (const point of ['claimed', 'sent', 'rcpt', 'data'] as const) expect([point, await told(point)]).toEqual([point, ['interrupted', 'sent']]);
  });
});

describe('killed under load', () => {
  beforeAll(() => begin({}));
  afterAll(end);
  const mails = rounds(240, 5_000);

  test(`worker, API, database and Temporal killed while ${mails} mails go to a server that defers, refuses and delays: each has one outcome, and copies are marked`, async () => {
    const recipients = Array.from({ length: mails }, (_, i) => `r${i}@y.test`);
    for (const [i, to] of recipients.entries()) {
      if (i % 10 === 0) sink.trouble.push({ at: 'rcpt', answer: '451 4.7.1 later', to, times: 1 });
      if (i % 20 === 7) sink.trouble.push({ at: 'rcpt', answer: '550 5.7.1 not wanted', to });
    }
    sink.delayMs = 20;
    const accepted = new Map<string, string>();
    const left = [...recipients];
    const senders = Array.from({ length: 8 }, async () => {
      for (let to = left.shift(); to; to = left.shift()) accepted.set(to, await send(to));
    });
    const killAt = [['worker', 0.15], ['api', 0.35], ['database', 0.55], ['temporal', 0.75], ['worker', 0.9]] as const;
    for (const [name, share] of killAt) {
      await eventually(async () => accepted.size >= mails * share, `${share} of the mails to be accepted`);
      process.kill(await pidOf(name), 'SIGKILL');
    }
    await Promise.all(senders);
    const ids = [...accepted.values()];
    await eventually(async () => {
      await endDeadLeases();
      return allSettled(ids);
    }, 'every message to be settled');
    sink.delayMs = 0;

    const rows = await query(`select r.address, r.status, exists (select from mail_event e where e.recipient_id = r.id and e.type = 'interrupted') as interrupted from mail_recipient r where r.message_id = any($1)`, ids) ?? [];
    expect(rows).toHaveLength(mails);
    expect(await query('select count(*)::int as n from mail_message where mail_service_id = $1', tenant.serviceId)).toEqual([{ n: mails }]);
    const copies = new Map<string, number>();
    for (const { to: [address = ''] } of sink.mails) copies.set(address, (copies.get(address) ?? 0) + 1);
    const faults = rows.flatMap(({ address, status, interrupted }) => {
      const refused = Number(String(address).slice(1, -'@y.test'.length)) % 20 === 7;
      const count = copies.get(address) ?? 0;
      const right = refused ? status === 'bounced' && count === 0 : status === 'sent' && (count === 1 || (count > 1 && interrupted));
      return right ? [] : [{ address, status, interrupted, count }];
    });
    expect(faults).toEqual([]);
  });
});

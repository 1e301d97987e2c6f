import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { MailgunTransport } from '../../../src/adapters/mail-transport/mailgun';
import { retryAfterOf } from '../../../src/adapters/mail-transport/provider-call';
import { ResendTransport } from '../../../src/adapters/mail-transport/resend';
import type { MailTransport } from '../../../src/mail/ports';
import { transportJob } from '../../support/transport-job';

type Call = { url: string; headers: IncomingHttpHeaders; body: string };
type Answer = { status: number; headers?: Record<string, string>; body?: unknown } | 'drop' | 'hang';

const never = new AbortController().signal;
const calls: Call[] = [];
let answer: Answer = { status: 200 };
let server: Server;
let base = '';

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => {
      calls.push({ url: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() });
      if (answer === 'drop') return void request.socket.destroy();
      if (answer === 'hang') return;
      response.writeHead(answer.status, answer.headers).end(answer.body === undefined ? '' : JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  base = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
});
beforeEach(() => {
  calls.length = 0;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});

const make: Record<string, () => MailTransport> = {
  resend: () => new ResendTransport({ apiKey: 're_key', baseUrl: base }),
  mailgun: () => new MailgunTransport({ apiKey: 'mg_key', baseUrl: base, domain: null }),
};

describe.each(['resend', 'mailgun'])('%s', (name) => {
  const send = (signal = never) => {
    const transport = make[name]?.();
    if (!transport) throw new Error('unknown');
    return transport.send(transportJob(), signal);
  };

  test.each([
    [400, { outcome: 'rejected', text: 'why' }], [404, { outcome: 'rejected' }], [413, { outcome: 'rejected' }], [422, { outcome: 'rejected' }],
    [401, { outcome: 'deferred', operatorFault: true }], [403, { outcome: 'deferred', operatorFault: true }],
    [409, { outcome: 'deferred', retryAfterSeconds: 90 }], [429, { outcome: 'deferred', retryAfterSeconds: 90 }], [500, { outcome: 'deferred' }], [503, { outcome: 'deferred', retryAfterSeconds: 90 }], [302, { outcome: 'deferred' }],
  ])('HTTP %i', async (status, expected) => {
    answer = { status, headers: { 'retry-after': '90', location: 'http://169.254.169.254/' }, body: { message: 'why' } };
    const result = await send();
    expect(result).toMatchObject({ ...expected, mxHost: '127.0.0.1' });
    expect(result.operatorFault ?? false).toBe(status === 401 || status === 403);
    expect(calls).toHaveLength(1);
  });

  test('a broken line, silence and an abort are deferred', async () => {
    answer = 'drop';
    expect(await send()).toMatchObject({ outcome: 'deferred' });
    answer = 'hang';
    expect(await send(AbortSignal.timeout(50))).toMatchObject({ outcome: 'deferred', text: 'no answer in time' });
  });
});

test('resend: JSON for one recipient, the same idempotency key for every attempt, our ids as tags', async () => {
  answer = { status: 200, body: { id: 'em_1' } };
  const job = transportJob({ attempt: 3 });
  expect(await make['resend']?.().send(job, never)).toMatchObject({ outcome: 'accepted', providerMessageId: 'em_1' });
  const [call] = calls;
  expect(call).toMatchObject({ url: '/emails', headers: { authorization: 'Bearer re_key', 'idempotency-key': job.recipientId, 'content-type': 'application/json' } });
  expect(JSON.parse(call?.body ?? '')).toEqual({
    from: '"Acme" <a@acme.test>', to: [job.recipient], reply_to: ['r@acme.test'], subject: 'Hello', text: job.parts.text, html: '<p>Hi</p>', headers: { 'X-Holdfast-Id': job.parts.holdfastId },
    tags: [{ name: 'holdfast_message', value: job.messageId }, { name: 'holdfast_recipient', value: job.recipientId }],
  });
});

test('mailgun: our bytes to one recipient through the domain of the sender, our ids as variables', async () => {
  answer = { status: 200, body: { id: '<abc@acme.test>', message: 'Queued. Thank you.' } };
  const job = transportJob();
  expect(await make['mailgun']?.().send(job, never)).toMatchObject({ outcome: 'accepted', providerMessageId: 'abc@acme.test', text: 'Queued. Thank you.' });
  const [call] = calls;
  expect(call).toMatchObject({ url: '/v3/acme.test/messages.mime', headers: { authorization: `Basic ${Buffer.from('api:mg_key').toString('base64')}`, 'content-type': expect.stringMatching(/^multipart\/form-data/) } });
  const boundary = /boundary=(.+)$/.exec(call?.headers['content-type'] ?? '')?.[1] ?? '';
  const fields = (call?.body ?? '').split(`--${boundary}`).slice(1, -1).map((part) => [/name="([^"]+)"/.exec(part)?.[1], part.slice(part.indexOf('\r\n\r\n') + 4, -2)]);
  expect(fields).toEqual([['to', job.recipient], ['v:holdfast_message', job.messageId], ['v:holdfast_recipient', job.recipientId], ['message', job.mime.toString()]]);
});

test('Retry-After: seconds or a date', () => {
  expect([retryAfterOf('120'), retryAfterOf(null), retryAfterOf('soon'), retryAfterOf('Thu, 01 Jan 1970 00:01:00 GMT', 0), retryAfterOf('Thu, 01 Jan 1970 00:01:00 GMT', 90_000)]).toEqual([120, null, null, 60, 0]);
});

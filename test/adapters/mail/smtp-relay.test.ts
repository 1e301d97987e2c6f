import { createServer, type Server, type Socket } from 'node:net';
import { SmtpRelayTransport, type RelayOptions } from '../../../src/adapters/mail-transport/smtp-relay';
import { SmtpSink } from '../../support/smtp-sink';
import { transportJob } from '../../support/transport-job';

const never = new AbortController().signal;
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function sink(options: Parameters<typeof SmtpSink.start>[0] = { hideSTARTTLS: true }): Promise<SmtpSink> {
  const made = await SmtpSink.start(options);
  closers.push(() => made.close());
  return made;
}

function relay(port: number, change: Partial<RelayOptions> = {}): SmtpRelayTransport {
  const made = new SmtpRelayTransport({ url: `smtp://127.0.0.1:${port}`, connections: 2, tls: 'opportunistic', heloName: 'holdfast.test', timeoutMs: 20_000, ...change });
  closers.push(() => made.close());
  return made;
}

/** A server that says what it is told to, line by line, to cut the conversation where no real one would. */
async function scripted(onLine: (line: string, socket: Socket) => void): Promise<number> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined).write('220 hello\r\n');
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n')) {
        const line = text.slice(0, at).trim();
        text = text.slice(at + 1);
        onLine(line, socket);
      }
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  closers.push(() => new Promise((done) => server.close(done)));
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

test('hands the bytes over as they are, one recipient per transaction, over kept connections', async () => {
  const server = await sink();
  const transport = relay(server.port);
  const jobs = Array.from({ length: 12 }, (_, i) => transportJob({ recipient: `r${i}@y.test` }));
  const results = await Promise.all(jobs.map((job) => transport.send(job, never)));
  expect(results.every(({ outcome, code, mxHost }) => outcome === 'accepted' && code === 250 && mxHost === '127.0.0.1')).toBe(true);
  expect(server.mails.map(({ to }) => to).sort()).toEqual(jobs.map(({ recipient }) => [recipient]).sort());
  for (const job of jobs) expect(server.mails.find(({ to }) => to[0] === job.recipient)).toMatchObject({ from: job.envelopeFrom, bytes: job.mime });
  expect(server.connections).toBe(2);
});

test.each([
  ['mail', '450 4.7.1 later', { outcome: 'deferred', code: 450, enhancedCode: '4.7.1', text: 'later' }],
  ['mail', '550 5.7.1 not you', { outcome: 'deferred', code: 550, enhancedCode: '5.7.1' }],
  ['rcpt', '451 4.7.1 greylisted', { outcome: 'deferred', code: 451 }],
  ['rcpt', '550 5.1.1 no such user', { outcome: 'refused', code: 550, enhancedCode: '5.1.1', text: 'no such user' }],
  ['rcpt', '553 gone', { outcome: 'refused', code: 553, text: 'gone' }],
  ['data', '554 5.7.1 spam', { outcome: 'refused', code: 554, enhancedCode: '5.7.1' }],
  ['data', '452 4.3.1 full', { outcome: 'deferred', code: 452 }],
  ['data', 'drop', { outcome: 'interrupted' }],
  ['mail', 'drop', { outcome: 'deferred' }],
  ['rcpt', 'drop', { outcome: 'deferred' }],
] as const)('a server that answers %s with %s', async (at, answer, expected) => {
  const server = await sink();
  server.trouble.push({ at, answer });
  const transport = relay(server.port);
  expect(await transport.send(transportJob(), never)).toMatchObject({ ...expected, mxHost: '127.0.0.1' });
  server.trouble.length = 0;
  expect(await transport.send(transportJob(), never)).toMatchObject({ outcome: 'accepted' });
  expect(server.mails).toHaveLength(1);
});

test('after a refused recipient the connection is used on', async () => {
  const server = await sink();
  server.trouble.push({ at: 'rcpt', answer: '550 5.1.1 no', to: 'bad@y.test' });
  const transport = relay(server.port, { connections: 1 });
  for (const recipient of ['bad@y.test', 'good@y.test', 'bad@y.test', 'fine@y.test']) await transport.send(transportJob({ recipient }), never);
  expect(server.mails.map(({ to }) => to[0])).toEqual(['good@y.test', 'fine@y.test']);
  expect(server.connections).toBe(1);
});

test('a kept connection that the server closed meanwhile is replaced, and the mail goes out once', async () => {
  const server = await sink();
  const transport = relay(server.port, { connections: 1 });
  await transport.send(transportJob(), never);
  server.cut();
  expect(await transport.send(transportJob(), never)).toMatchObject({ outcome: 'accepted' });
  expect([server.mails.length, server.connections]).toEqual([2, 2]);
});

test('a connection carries at most a hundred mails', async () => {
  const server = await sink();
  const transport = relay(server.port, { connections: 1 });
  for (let i = 0; i < 101; i++) await transport.send(transportJob(), never);
  expect(server.connections).toBe(2);
});

test('where nobody listens, or somebody says nothing, the mail is deferred', async () => {
  const server = await sink();
  const { port } = server;
  await server.close();
  expect(await relay(port).send(transportJob(), never)).toMatchObject({ outcome: 'deferred', text: expect.stringContaining('ECONNREFUSED') });
  const silent = await scripted(() => undefined);
  expect(await relay(silent, { timeoutMs: 100 }).send(transportJob(), never)).toMatchObject({ outcome: 'deferred', text: 'no answer in time' });
});

const polite = (line: string): string | null => (/^EHLO/.test(line) ? '250 hello' : /^(MAIL|RCPT)/.test(line) ? '250 ok' : line === 'DATA' ? '354 go' : null);

test('where a line breaks decides: before the final dot nothing was taken, after it nobody knows', async () => {
  const inHead = await scripted((line, socket) => (line.startsWith('Subject:') ? undefined : line === 'DATA' ? socket.destroy() : socket.write(`${polite(line) ?? ''}\r\n`.replace(/^\r\n$/, ''))));
  expect(await relay(inHead).send(transportJob(), never)).toMatchObject({ outcome: 'deferred' });
  const afterDot = await scripted((line, socket) => {
    const reply = polite(line);
    if (reply) socket.write(`${reply}\r\n`);
    else if (line === '.') socket.destroy();
  });
  const job = transportJob({ mime: Buffer.from('Subject: x\r\n\r\nbody\r\n') });
  expect(await relay(afterDot).send(job, never)).toMatchObject({ outcome: 'interrupted' });
  const hanging = await scripted((line, socket) => void (polite(line) && socket.write(`${polite(line)}\r\n`)));
  expect(await relay(hanging, { timeoutMs: 200 }).send(job, never)).toMatchObject({ outcome: 'interrupted', text: 'no answer in time' });
});

test('what a server says before TLS is not believed after it; nonsense ends the conversation', async () => {
  const injecting = await scripted((line, socket) => void socket.write(line.startsWith('EHLO') ? '250-hello\r\n250 STARTTLS\r\n' : '220 go\r\n250 injected\r\n'));
  expect(await relay(injecting, { tls: 'required' }).send(transportJob(), never)).toMatchObject({ outcome: 'deferred' });
  const nonsense = await scripted((_line, socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n'));
  expect(await relay(nonsense).send(transportJob(), never)).toMatchObject({ outcome: 'deferred', text: expect.stringContaining('not an SMTP reply') });
});

test('TLS: used where offered, checked where required, given up where it fails and nothing demands it', async () => {
  const server = await sink({});
  expect(await relay(server.port).send(transportJob(), never)).toMatchObject({ outcome: 'accepted', tls: expect.stringMatching(/^TLSv1\.[23]$/) });
  expect(server.mails[0]?.secure).toBe(true);
  expect(await relay(server.port, { tls: 'required' }).send(transportJob(), never)).toMatchObject({ outcome: 'deferred', text: expect.stringContaining('certificate') });
  expect(await relay(server.port, { tls: 'off' }).send(transportJob(), never)).toMatchObject({ outcome: 'accepted' });
  expect(server.mails[1]?.secure).toBe(false);
  const plain = await sink();
  expect(await relay(plain.port, { tls: 'required' }).send(transportJob(), never)).toMatchObject({ outcome: 'deferred', text: 'The server offers no TLS.' });
  let first = true;
  const broken = await scripted((line, socket) => {
    if (line.startsWith('EHLO')) socket.write(first ? '250-hello\r\n250 STARTTLS\r\n' : '250 hello\r\n');
    else if (line === 'STARTTLS') {
      first = false;
      socket.end('220 go\r\nnot TLS at all\r\n');
    } else if (line === '.') socket.write('250 2.0.0 taken\r\n');
    else if (polite(line)) socket.write(`${polite(line)}\r\n`);
  });
  const result = await relay(broken).send(transportJob({ mime: Buffer.from('Subject: x\r\n\r\nbody\r\n') }), never);
  expect(result).toMatchObject({ outcome: 'accepted' });
  expect(result.tls).toBeUndefined();
});

test('credentials are given to who asks, and never in the clear to somebody far away', async () => {
  const seen: string[] = [];
  const server = await sink({
    disabledCommands: [], authOptional: false, allowInsecureAuth: true, onAuth: ({ username, password }, _session, done) => {
      seen.push(`${username}:${password}`);
      done(password === 'p@ss' ? null : new Error('535 5.7.8 no'), { user: 1 });
    },
  });
  expect(await relay(server.port, { url: `smtp://us%40er:p%40ss@127.0.0.1:${server.port}` }).send(transportJob(), never)).toMatchObject({ outcome: 'accepted' });
  expect(seen).toEqual(['us@er:p@ss']);
  expect(await relay(server.port, { url: `smtp://user:wrong@127.0.0.1:${server.port}` }).send(transportJob(), never)).toMatchObject({ outcome: 'deferred', code: 535 });
});

test('an abort ends a wait at once', async () => {
  const server = await sink();
  server.trouble.push({ at: 'mail', answer: 'hang' });
  const stop = new AbortController();
  const sending = relay(server.port, { connections: 1 }).send(transportJob(), stop.signal);
  stop.abort();
  expect(await sending).toMatchObject({ outcome: 'deferred', text: 'the attempt was cancelled' });
});

test('an address that is none is never written to the line', async () => {
  const server = await sink();
  await expect(relay(server.port).send(transportJob({ recipient: 'x@y.test>\r\nRCPT TO:<z@y.test' }), never)).rejects.toThrow();
  expect(server.mails).toEqual([]);
});

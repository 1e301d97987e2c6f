import { createServer, type Server } from 'node:http';
import { CaptureTransport } from '../../../src/adapters/mail-transport/capture';
import { DirectMxTransport } from '../../../src/adapters/mail-transport/direct-mx';
import { MailgunTransport } from '../../../src/adapters/mail-transport/mailgun';
import { ResendTransport } from '../../../src/adapters/mail-transport/resend';
import { SmtpRelayTransport } from '../../../src/adapters/mail-transport/smtp-relay';
import type { DnsResolver } from '../../../src/dns/ports';
import type { MailTransport, TransportJob } from '../../../src/mail/ports';
import { SmtpSink } from '../../support/smtp-sink';
import { transportJob } from '../../support/transport-job';

/** What every transport owes the attempts that use it, whoever is at the other end. */
type Mood = 'takes' | 'defers' | 'refuses' | 'silent' | 'breaks';
interface World {
  transport: MailTransport;
  /** What the other end took: a text in which each mail's recipient stands. */
  taken(): readonly string[];
  mood(mood: Mood): void;
  close(): Promise<void>;
}
const never = new AbortController().signal;

async function smtpWorld(make: (port: number) => MailTransport): Promise<World> {
  const sink = await SmtpSink.start({ hideSTARTTLS: true });
  const troubles = { takes: [], defers: [{ at: 'rcpt', answer: '451 4.7.1 later' }], refuses: [{ at: 'rcpt', answer: '550 5.1.1 nobody' }], silent: [{ at: 'rcpt', answer: 'hang' }], breaks: [{ at: 'rcpt', answer: 'drop' }] } as const;
  return {
    transport: make(sink.port), taken: () => sink.mails.flatMap(({ to }) => to), close: () => sink.close(),
    mood: (mood) => void sink.trouble.splice(0, Infinity, ...troubles[mood]),
  };
}

async function httpWorld(make: (base: string) => MailTransport): Promise<World> {
  const taken: string[] = [];
  let present: Mood = 'takes';
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => {
      if (present === 'silent') return;
      if (present === 'breaks') return void request.socket.destroy();
      const text = Buffer.concat(chunks).toString();
      const status = { takes: 200, defers: 503, refuses: 422 }[present];
      if (status === 200) taken.push(text);
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ id: `<${taken.length}@provider>`, message: 'why' }));
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  return {
    transport: make(`http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`), taken: () => taken, mood: (mood) => { present = mood; },
    close: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/** Every domain's exchanger is this machine. */
const resolver: DnsResolver = {
  resolve: async (name, type) => ({
    outcome: 'answer', conclusive: true, canonicalName: name, ttl: 60, zone: null, server: null, queries: 1, durationMs: 0,
    records: type === 'MX' ? [{ name, type, ttl: 60, value: '10 mx.y.test' }] : type === 'A' ? [{ name, type, ttl: 60, value: '127.0.0.1' }] : [],
  }),
  delegation: () => Promise.reject(new Error('not asked')), askServer: () => Promise.reject(new Error('not asked')),
};

/** The other end of `capture` is the recipient's own local part. */
async function captureWorld(): Promise<World> {
  const taken: string[] = [];
  let present: Mood = 'takes';
  const own = new CaptureTransport({ keep: async ({ recipient }, accepted) => void (accepted && taken.push(recipient)), report: async () => undefined, feedbackAddress: 'fbl@bounce.test', now: () => new Date() });
  const locals = { takes: null, defers: 'defer+9', refuses: 'bounce+5.1.1', silent: 'slow+60', breaks: 'defer+9' };
  return {
    taken: () => taken, mood: (mood) => { present = mood; }, close: async () => undefined,
    transport: { name: own.name, acceptedMeans: own.acceptedMeans, close: () => own.close(), send: (job, signal) => own.send(locals[present] === null ? job : { ...job, recipient: `${locals[present]}@y.test` }, signal) },
  };
}

const common = { heloName: 'holdfast.test', timeoutMs: 20_000 };
const worlds: Record<MailTransport['name'], { acceptedMeans: 'delivered' | 'sent'; refusal: 'refused' | 'rejected'; open: () => Promise<World> }> = {
  capture: { acceptedMeans: 'delivered', refusal: 'refused', open: captureWorld },
  smtp_relay: { acceptedMeans: 'sent', refusal: 'refused', open: () => smtpWorld((port) => new SmtpRelayTransport({ ...common, url: `smtp://127.0.0.1:${port}`, connections: 5, tls: 'opportunistic' })) },
  direct_mx: { acceptedMeans: 'delivered', refusal: 'refused', open: () => smtpWorld((port) => new DirectMxTransport({ ...common, resolver, port, allowPrivate: true, connectionsPerDomain: 5 })) },
  resend: { acceptedMeans: 'sent', refusal: 'rejected', open: () => httpWorld((baseUrl) => new ResendTransport({ apiKey: 'k', baseUrl })) },
  mailgun: { acceptedMeans: 'sent', refusal: 'rejected', open: () => httpWorld((baseUrl) => new MailgunTransport({ apiKey: 'k', baseUrl, domain: null })) },
};

describe.each(Object.entries(worlds))('%s', (name, { acceptedMeans, refusal, open }) => {
  let world: World;
  beforeEach(async () => {
    world = await open();
  });
  afterEach(async () => {
    await world.transport.close();
    await world.close();
  });
  const send = (change: Partial<TransportJob> = {}, signal = never) => world.transport.send(transportJob(change), signal);
  const takenFor = (recipient: string) => world.taken().filter((text) => text.includes(recipient)).length;

  test('has its name, and says what an acceptance means', () => {
    expect([world.transport.name, world.transport.acceptedMeans]).toEqual([name, acceptedMeans]);
  });

  test('a mail that is taken is accepted and was handed over once; the job is left as it was', async () => {
    const job = transportJob({ recipient: 'one@y.test' });
    const before = structuredClone({ ...job, mime: job.mime.toString('latin1') });
    expect(await world.transport.send(job, never)).toMatchObject({ outcome: 'accepted' });
    expect(takenFor('one@y.test')).toBe(1);
    expect({ ...job, mime: job.mime.toString('latin1') }).toEqual(before);
  });

  test('twenty at once: each is handed over once', async () => {
    const results = await Promise.all(Array.from({ length: 20 }, (_, i) => send({ recipient: `many${i}.@y.test`.replace('.@', '-x@') })));
    expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(['accepted']));
    expect(Array.from({ length: 20 }, (_, i) => takenFor(`many${i}-x@y.test`))).toEqual(Array.from({ length: 20 }, () => 1));
  });

  test.each([['defers', 'deferred'], ['refuses', refusal], ['breaks', 'deferred']] as const)('who %s: %s, never thrown, in words that may be shown, and the next mail is taken', async (mood, outcome) => {
    world.mood(mood);
    const result = await send({ recipient: 'two@y.test' });
    expect(result.outcome).toBe(outcome);
    expect(result.text ?? '').not.toMatch(/[\p{Cc}]/u);
    expect((result.text ?? '').length).toBeLessThanOrEqual(500);
    expect(takenFor('two@y.test')).toBe(0);
    world.mood('takes');
    expect(await send({ recipient: 'three@y.test' })).toMatchObject({ outcome: 'accepted' });
  });

  test('an abort ends a wait: deferred, and nothing was handed over', async () => {
    world.mood('silent');
    const stop = new AbortController();
    const running = send({ recipient: 'four@y.test' }, stop.signal);
    setTimeout(() => stop.abort(), 50);
    expect(await running).toMatchObject({ outcome: 'deferred' });
    expect(takenFor('four@y.test')).toBe(0);
  });

  test('one that is aborted before it began contacts nobody', async () => {
    world.mood('silent');
    expect(await send({ recipient: 'five@y.test' }, AbortSignal.abort())).toMatchObject({ outcome: 'deferred' });
  });

  test('closed twice is closed', async () => {
    await world.transport.close();
    await expect(world.transport.close()).resolves.toBeUndefined();
  });
});

import { DirectMxTransport, type DirectMxOptions } from '../../../src/adapters/mail-transport/direct-mx';
import { findExchangers } from '../../../src/adapters/mail-transport/exchangers';
import type { DnsResolver, Resolution } from '../../../src/dns/ports';
import { SmtpSink } from '../../support/smtp-sink';
import { transportJob } from '../../support/transport-job';

const never = new AbortController().signal;
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Known = Readonly<Record<string, readonly string[] | 'nxdomain' | 'servfail'>>;

/** DNS as a table: `name type` to values; what is not in it exists without such records. */
function dns(known: Known): DnsResolver {
  const answer = (name: string, type: string): Resolution => {
    const found = known[`${name} ${type}`] ?? known[name] ?? [];
    const records = typeof found === 'string' ? [] : found.map((value) => ({ name, type, ttl: 60, value }));
    const outcome = typeof found === 'string' ? found : records.length > 0 ? 'answer' : 'nodata';
    return { outcome, conclusive: outcome !== 'servfail', canonicalName: name, records, ttl: 60, zone: null, server: null, queries: 1, durationMs: 0 };
  };
  return {
    resolve: async (name, type) => answer(name, type),
    delegation: () => Promise.reject(new Error('not asked')), askServer: () => Promise.reject(new Error('not asked')),
  };
}

async function sinks(hosts: readonly string[]): Promise<SmtpSink[]> {
  const made: SmtpSink[] = [];
  for (const host of hosts) {
    const sink = await SmtpSink.start({ hideSTARTTLS: true }, host, made[0]?.port ?? 0);
    closers.push(() => sink.close());
    made.push(sink);
  }
  return made;
}

function mx(known: Known, change: Partial<DirectMxOptions> = {}): DirectMxTransport {
  const made = new DirectMxTransport({ resolver: dns(known), allowPrivate: true, port: 25, heloName: 'holdfast.test', connectionsPerDomain: 5, timeoutMs: 20_000, ...change });
  closers.push(() => made.close());
  return made;
}

test('goes to the exchanger with the lowest preference; its 250 is delivery', async () => {
  const [first, second] = await sinks(['127.0.4.1', '127.0.4.2']);
  const transport = mx({ 'y.test MX': ['20 b.y.test', '10 a.y.test'], 'a.y.test A': ['127.0.4.1'], 'b.y.test A': ['127.0.4.2'] }, { port: first?.port ?? 0 });
  expect(transport.acceptedMeans).toBe('delivered');
  const job = transportJob();
  expect(await transport.send(job, never)).toMatchObject({ outcome: 'accepted', mxHost: 'a.y.test', code: 250 });
  expect(first?.mails).toMatchObject([{ bytes: job.mime, to: [job.recipient] }]);
  expect(second?.connections).toBe(0);
});

test('goes on to the next address and host while none has taken the conversation, and not after', async () => {
  const [first, second] = await sinks(['127.0.4.3', '127.0.4.4']);
  const transport = mx({ 'y.test MX': ['10 a.y.test', '20 b.y.test'], 'a.y.test A': ['127.0.4.9', '127.0.4.8'], 'b.y.test A': ['127.0.4.3'] }, { port: first?.port ?? 0 });
  expect(await transport.send(transportJob(), never)).toMatchObject({ outcome: 'accepted', mxHost: 'b.y.test' });
  first?.trouble.push({ at: 'rcpt', answer: '451 4.7.1 greylisted' });
  const answering = mx({ 'y.test MX': ['10 a.y.test', '20 b.y.test'], 'a.y.test A': ['127.0.4.3'], 'b.y.test A': ['127.0.4.4'] }, { port: first?.port ?? 0 });
  expect(await answering.send(transportJob(), never)).toMatchObject({ outcome: 'deferred', code: 451, mxHost: 'a.y.test' });
  expect(second?.connections).toBe(0);
});

test('with no MX the domain itself is the exchanger', async () => {
  const [sink] = await sinks(['127.0.4.5']);
  expect(await mx({ 'y.test A': ['127.0.4.5'] }, { port: sink?.port ?? 0 }).send(transportJob(), never)).toMatchObject({ outcome: 'accepted', mxHost: 'y.test' });
});

test.each([
  ['null MX', { 'y.test MX': ['0 .'] }, { outcome: 'refused', enhancedCode: '5.1.10' }],
  ['null MX without a dot', { 'y.test MX': ['0 '] }, { outcome: 'refused', enhancedCode: '5.1.10' }],
  ['no such domain', { 'y.test': 'nxdomain' }, { outcome: 'refused', enhancedCode: '5.1.2' }],
  ['neither MX nor address', {}, { outcome: 'refused', enhancedCode: '5.1.2' }],
  ['exchangers without addresses', { 'y.test MX': ['10 a.y.test'] }, { outcome: 'refused', enhancedCode: '5.1.2' }],
  ['doubt about MX', { 'y.test': 'servfail' }, { outcome: 'deferred' }],
  ['doubt about the only address', { 'y.test MX': ['10 a.y.test'], 'a.y.test': 'servfail' }, { outcome: 'deferred' }],
] as const)('%s', async (_name, known, expected) => {
  expect(await mx(known).send(transportJob(), never)).toMatchObject(expected);
});

test('contacts no address of this machine or of a private network, under no disguise', async () => {
  const [sink] = await sinks(['127.0.4.6']);
  const inner = ['127.0.4.6', '10.0.0.1', '192.168.1.1', '172.16.0.1', '169.254.169.254', '0.0.0.0', '100.64.0.1', '224.0.0.1', '::1', '::', '::ffff:127.0.4.6', 'fe80::1', 'fc00::1', '64:ff9b::7f00:406', '2002:7f00:406::1'];
  for (const address of inner) {
    const known = { 'y.test MX': ['10 a.y.test'], [`a.y.test ${address.includes(':') ? 'AAAA' : 'A'}`]: [address] };
    expect(await mx(known, { allowPrivate: false, port: sink?.port ?? 0 }).send(transportJob(), never)).toMatchObject({ outcome: 'deferred', enhancedCode: '4.4.4' });
  }
  expect(sink?.connections).toBe(0);
});

test('asks at most five hosts, at two addresses each', async () => {
  const known: Record<string, string[]> = { 'y.test MX': [] };
  for (let i = 0; i < 8; i++) {
    known['y.test MX']?.push(`${i} h${i}.y.test`);
    known[`h${i}.y.test A`] = [`127.0.4.${i * 3 + 10}`, `127.0.4.${i * 3 + 11}`, `127.0.4.${i * 3 + 12}`];
    known[`h${i}.y.test AAAA`] = ['::1'];
  }
  const found = await findExchangers('y.test', { resolver: dns(known), allowPrivate: true });
  expect('hosts' in found && found.hosts.map(({ host, addresses }) => [host, addresses])).toEqual(
    [0, 1, 2, 3, 4].map((i) => [`h${i}.y.test`, [`127.0.4.${i * 3 + 10}`, '::1']]));
});

test('a domain gets at most its number of connections at once, other domains their own', async () => {
  const [sink] = await sinks(['127.0.4.7']);
  const transport = mx({ 'y.test A': ['127.0.4.7'], 'z.test A': ['127.0.4.7'] }, { port: sink?.port ?? 0, connectionsPerDomain: 2 });
  const jobs = [...Array.from({ length: 8 }, () => transportJob()), transportJob({ recipient: 'x@z.test' })];
  const results = await Promise.all(jobs.map((job) => transport.send(job, never)));
  expect(results.map(({ outcome }) => outcome)).toEqual(jobs.map(() => 'accepted'));
  expect(sink?.mails).toHaveLength(9);
  expect(sink?.openMost).toBe(3);
});

import fc from 'fast-check';
import { once } from 'node:events';
import { connect } from 'node:net';
import { LoginReader, readFirstPacket, startupBytesMax, writeFatal, writeStartup } from '../../../src/edge/postgres/gateway/wire';
import { routeName } from '../../../src/edge/postgres/gateway/admission';
import { startGateway, TestRoutes } from '../../support/postgres-gateway';
import { HostSite, newService } from '../../support/postgres-host';

let site: HostSite;
let gateway: Awaited<ReturnType<typeof startGateway>>;

beforeAll(async () => {
  site = await HostSite.make();
  gateway = await startGateway({ site, routes: new TestRoutes() });
});
afterAll(async () => {
  await gateway.drain(0);
  await site.remove();
});

/** What comes back for these bytes until the gateway hangs up. */
async function answerTo(bytes: Uint8Array, thenEnd = true): Promise<string> {
  const socket = connect(gateway.port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk)).on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(bytes);
  if (thenEnd) socket.end();
  await once(socket, 'close');
  return Buffer.concat(chunks).toString('latin1');
}

const int = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const packet = (code: number, body: Buffer = Buffer.alloc(0)) => Buffer.concat([int(8 + body.length), int(code), body]);
const ssl = packet(80_877_103);

test.each([
  ['nothing', Buffer.alloc(0)],
  ['HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')],
  ['a packet of negative length', Buffer.concat([int(-1), int(196_608)])],
  ['a packet shorter than its head', Buffer.concat([int(7), int(196_608)])],
  ['a packet longer than 10,000 bytes', packet(196_608, Buffer.alloc(startupBytesMax))],
  ['protocol 2', packet(131_072)],
  ['protocol 4', packet(262_144)],
  ['parameters without an end', packet(196_608, Buffer.from('user\0u'))],
  ['parameters that are not UTF-8', packet(196_608, Buffer.from('user\0\xff\xfe\0\0', 'latin1'))],
  ['a name without a value', packet(196_608, Buffer.from('user\0\0'))],
  ['a TLS record that is not a handshake', Buffer.from([0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5])],
  ['an encryption request with a body', packet(80_877_103, Buffer.from('x'))],
  ['a cancel request too short', packet(80_877_102, Buffer.from('pid!'))],
])('%s is hung up on', async (_name, bytes) => {
  expect(await answerTo(bytes)).not.toContain('R\0\0\0');
});

test('bytes sent before the answer to SSLRequest are not taken for the session’s own', async () => {
  expect(await answerTo(Buffer.concat([ssl, packet(196_608, Buffer.from('user\0x\0\0'))]), false)).toBe('');
});

test('encryption is offered once', async () => {
  const socket = connect(gateway.port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(packet(80_877_104));
  expect((await once(socket, 'data'))[0].toString()).toBe('N');
  socket.write(packet(80_877_104));
  await once(socket, 'close');
});

test('a cancel request for nobody is hung up on without a word', async () => {
  expect(await answerTo(packet(80_877_102, Buffer.concat([int(1), int(2)])))).toBe('');
});

test('whatever bytes come, the gateway lives and answers the next', async () => {
  await fc.assert(fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
    const answer = await answerTo(bytes);
    expect(answer === '' || answer === 'S' || answer === 'N' || answer.startsWith('E') || answer.startsWith('\x15')).toBe(true);
  }), { numRuns: 150 });
  expect(await answerTo(ssl)).toBe('S');
}, 60_000);

test('a startup packet that was read and written again says the same', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 40 }).filter((value) => !value.includes('\0') && value.isWellFormed());
  fc.assert(fc.property(fc.dictionary(text.filter((name) => name !== ''), text, { maxKeys: 8 }), (parameters) => {
    const startup = { protocol: 196_608, parameters: new Map(Object.entries(parameters)) };
    expect(readFirstPacket(writeStartup(startup).subarray(4))).toEqual({ kind: 'startup', startup });
  }));
});

test('the login is followed whatever pieces it comes in', () => {
  const message = (type: string, body: Buffer) => Buffer.concat([Buffer.from(type), int(body.length + 4), body]);
  const key = Buffer.concat([int(4711), Buffer.from('secret!!')]);
  const stream = Buffer.concat([
    message('R', int(0)), message('S', Buffer.from('server_version\x0018.4\0')), message('S', Buffer.alloc(20_000)), message('K', key), message('Z', Buffer.from('I')),
  ]);
  fc.assert(fc.property(fc.array(fc.integer({ min: 1, max: stream.length - 1 }), { maxLength: 12 }), (cuts) => {
    const reader = new LoginReader();
    const edges = [0, ...cuts.toSorted((a, b) => a - b), stream.length];
    const events = edges.slice(1).flatMap((end, index) => reader.read(stream.subarray(edges[index], end)));
    expect(events).toEqual([{ kind: 'key', key: key.toString('hex') }, { kind: 'ready' }]);
  }));
  expect(new LoginReader().read(writeFatal('28P01', 'no'))).toEqual([{ kind: 'refused', sqlstate: '28P01' }]);
});

test('a service is named by host, then by option, then by login, and by nothing else', () => {
  const { serviceId, names } = newService().ref;
  const other = newService().ref;
  const parameters = (user: string, options?: string) => new Map([['user', user], ...(options ? [['options', options] as const] : [])]);
  expect(routeName(`${names.label}.local.pg.test`, parameters(other.names.logins[0]))).toBe(serviceId);
  expect(routeName('localhost', parameters('reader', `-c holdfast.service=${serviceId}`))).toBe(serviceId);
  expect(routeName(null, parameters(other.names.logins[0], `-c work_mem=8MB -choldfast.service=${serviceId}`))).toBe(serviceId);
  expect(routeName(null, parameters(other.names.logins[0], '-c holdfast.service=pg_nonsense'))).toBeNull();
  expect(routeName(null, parameters(names.logins[1]))).toBe(names.key);
  for (const user of [names.owner, names.restricted, 'postgres', 'holdfast_admin', `${names.logins[0]} `, names.logins[0].toUpperCase(), '']) {
    expect(routeName(null, parameters(user))).toBeNull();
  }
});

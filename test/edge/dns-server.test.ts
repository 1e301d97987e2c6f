import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { newId } from '../../src/core/ids';
import type { ZoneFeed } from '../../src/dns/ports';
import { addressOf, ask, decode, exchangeTcp, lines, queryFor, startTestServer } from '../support/dns-client';
import { fullZone, HandFeed, rrsets } from '../support/dns-feed';

const zoneId = newId('zone');
const zone = fullZone('example.com', ['www A 300 192.0.2.1'], { zoneId });

test('it binds when every zone is there, not before', async () => {
  const order: string[] = [];
  const feed = new HandFeed([zone]);
  const slow: ZoneFeed = {
    start: async (apply) => {
      await new Promise((resolve) => setImmediate(resolve));
      await feed.start(apply);
      order.push('loaded');
    },
    stop: () => feed.stop(),
  };
  const server = await startTestServer(feed, { feed: slow });
  order.push('bound');
  expect(order).toEqual(['loaded', 'bound']);
  expect(lines((await ask(addressOf(server), 'www.example.com', 'A')).answers)).toHaveLength(1);
  await server.close();
});

test('an address that is taken: nothing stays bound, the feed is stopped', async () => {
  const taken = createServer().listen(0, '127.0.0.2');
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  const feed = new HandFeed([zone]);
  await expect(startTestServer(feed, { listen: [{ host: '127.0.0.1', port }, { host: '127.0.0.2', port }] })).rejects.toThrow(/EADDRINUSE/);
  expect(() => feed.push(zone)).toThrow('not started');
  const again = await startTestServer(new HandFeed([zone]), { listen: [{ host: '127.0.0.1', port }] });
  await again.close();
  taken.close();
});

test('it tells which versions it has, and what could not be taken leaves the old answers', async () => {
  const feed = new HandFeed([zone]);
  const server = await startTestServer(feed);
  const next = { ...zone, kind: 'diff' as const, version: 2, fromVersion: 1, serial: 2_026_112_199, replace: rrsets('example.com', ['www A 300 192.0.2.2']) };
  expect(feed.push({ ...next, replace: [{ name: 'www.example.com', type: 'A', ttl: 300, values: ['nonsense'] }] })).toBe('refused');
  expect(server.versions()).toEqual([{ domain: 'example.com', zoneId, version: 1, serial: zone.serial }]);
  expect(lines((await ask(addressOf(server), 'www.example.com', 'A')).answers)).toEqual(['www.example.com A 300 192.0.2.1']);
  expect(feed.push(next)).toBe('applied');
  expect(server.versions()).toEqual([{ domain: 'example.com', zoneId, version: 2, serial: 2_026_112_199 }]);
  expect(lines((await ask(addressOf(server), 'www.example.com', 'A')).answers)).toEqual(['www.example.com A 300 192.0.2.2']);
  expect(server.takeCounts()).toEqual([{ zoneId, queries: 2 }]);
  await server.close();
});

test('all addresses answer the same, over UDP and TCP', async () => {
  const server = await startTestServer(new HandFeed([zone]), { listen: [{ host: '127.0.0.1', port: 0 }, { host: '127.0.0.2', port: 0 }, { host: '::1', port: 0 }] });
  for (const at of server.addresses) {
    const [tcp] = await exchangeTcp(at, [queryFor('www.example.com', 'A')]);
    expect(tcp && lines(decode(tcp).answers)).toEqual(['www.example.com A 300 192.0.2.1']);
    if (at.host !== '::1') expect(lines((await ask(at, 'www.example.com', 'A')).answers)).toEqual(['www.example.com A 300 192.0.2.1']);
  }
  await server.close();
});

test('over UDP equal answers beyond the rate are left out, every second one cut; TCP is not limited', async () => {
  const server = await startTestServer(new HandFeed([zone]), { rateLimit: { perSecond: 2, exempt: [] }, nowMs: () => 1000 });
  const at = addressOf(server);
  const socket = createSocket('udp4');
  const received: string[] = [];
  const done = new Promise<void>((resolve) => socket.on('message', (octets) => {
    received.push(`${octets.readUInt16BE(0)}${decode(octets).flag_tc ? ' cut' : ''}`);
    if (octets.readUInt16BE(0) === 6) resolve();
  }));
  for (const id of [1, 2, 3, 4, 5, 6]) await new Promise<void>((resolve) => socket.send(queryFor('www.example.com', 'A', { id }), at.port, at.host, () => resolve()));
  await done;
  socket.close();
  expect(received).toEqual(['1', '2', '4 cut', '6 cut']);
  expect((await exchangeTcp(at, [queryFor('www.example.com', 'A')]))[0]?.length).toBeGreaterThan(40);
  await server.close();
});

import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { UsedTokens } from '../../../src/edge/gateway/challenge';
import { judgesOf } from '../../../src/edge/gateway/judges';
import { RateLimits } from '../../../src/edge/gateway/limits';
import { silent } from '../../support/accepted-work';
import { engineSaying } from '../../support/gateway-requests';
import { sendRaw, withGateway, type Origin } from '../../support/gateway-world';
import { rounds } from '../../support/rounds';
import { until } from '../../support/until';

const world = withGateway({ makeJudge: judgesOf({ engine: engineSaying(), limits: new RateLimits({ shared: false }), used: new UsedTokens(), secret: randomBytes(32), log: silent }) });
let origin: Origin;
beforeAll(async () => {
  origin = await world.origin((request, response) => request.resume().on('end', () => response.end('through')));
});
const records = [{ name: '@', value: '127.0.0.1', get port() { return origin.port; } }];
const get = (host: string, path: string, more = '') => world.raw(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`).then(({ status }) => status);

const statuses = [403, 404, 429, 451, 503];
const statusOf = (version: number) => statuses[version % statuses.length] ?? 0;
/** Rules of two stages that name their version: one of the path, one that waits for the body. */
const policyOfVersion = (version: number) => ({
  mode: 'block',
  customRules: [
    { id: `path-${version}`, match: { field: 'path', op: 'eq', value: '/a' }, action: 'block', status: statusOf(version) },
    { id: `body-${version}`, match: { all: [{ field: 'path', op: 'eq', value: '/b' }, { field: 'bodySize', op: 'gt', value: 1 }] }, action: 'block', status: statusOf(version) },
  ],
});

test('of policies that follow each other under load every request is judged by exactly one, and by none that is older than the last it has seen', async () => {
  const changes = rounds(250, 1_000);
  const zoneId = await world.zone('moving.test', records, { policy: policyOfVersion(1) });
  world.records.length = 0;
  let isOver = false;
  const clients = Promise.all(Array.from({ length: 4 }, async (_, client) => {
    const answers: number[] = [];
    while (!isOver) answers.push(await get('moving.test', '/a', `X-Client: ${client}\r\n`));
    return answers;
  }));
  const socket = connect(world.httpPort, '127.0.0.1');
  const slow = sendRaw(socket, 'POST /b HTTP/1.1\r\nHost: moving.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\na\r\n', (text) => text.includes('</html>'));
  for (let version = 2; version <= changes; version++) {
    expect(await world.writePolicy(zoneId, policyOfVersion(version))).toBe(version);
    if (version === changes - 50) socket.write('3\r\nbcd\r\n0\r\n\r\n');
  }
  await until(() => world.records.some(({ request }) => request.policyVersion === changes), 'the last version to judge');
  isOver = true;
  const answered = await clients;
  const { status: slowStatus } = await slow;
  const judged = world.records.map(({ request }) => request);
  for (const { decision: { ruleId }, facts: { path }, policyVersion, status } of judged) expect([ruleId, status]).toEqual([`${path === '/a' ? 'path' : 'body'}-${policyVersion}`, statusOf(policyVersion)]);
  answered.forEach((answers, client) => {
    const own = judged.filter(({ facts: { headers } }) => headers.some(([name, value]) => name === 'x-client' && value === String(client)));
    expect(own.map(({ status }) => status)).toEqual(answers);
    expect(own.map(({ policyVersion }) => policyVersion)).toEqual(own.map(({ policyVersion }) => policyVersion).sort((a, b) => a - b));
  });
  const late = judged.find(({ facts: { path } }) => path === '/b');
  expect([late?.status, late?.policyVersion]).toEqual([slowStatus, expect.any(Number)]);
  expect(late?.policyVersion).toBeLessThan(changes - 50);
  expect(new Set(judged.map(({ policyVersion }) => policyVersion)).size).toBeGreaterThan(10);
}, 300_000);

test('each of many zones is judged by its own policy', async () => {
  const count = rounds(100, 500);
  const zones = Array.from({ length: count }, (_, i) => `z${i}.many.example`);
  for (const [i, domain] of zones.entries()) await world.zone(domain, records, { policy: { mode: 'block', customRules: [{ id: `own-${i}`, match: { field: 'path', op: 'eq', value: `/only-${i}` }, action: 'block', status: statusOf(i) }] } });
  for (const [i, domain] of zones.entries()) {
    await until(async () => (await get(domain, `/only-${i}`)) === statusOf(i), 'its own policy');
    expect(await get(domain, `/only-${(i + 1) % count}`)).toBe(200);
  }
}, 300_000);

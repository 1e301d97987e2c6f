import { CaptureTransport } from '../../../src/adapters/mail-transport/capture';
import { readReport } from '../../../src/mail/intake/report';
import { transportJob } from '../../support/transport-job';

type Kept = { recipient: string; accepted: boolean };
type Planned = { kind: 'dsn' | 'arf'; envelopeTo: string; mime: Buffer; delaySeconds: number };
const never = new AbortController().signal;
const kept: Kept[] = [];
const planned: Planned[] = [];
const transport = new CaptureTransport({
  keep: async ({ recipient }, accepted) => void kept.push({ recipient, accepted }), report: async (_job, report) => void planned.push(report), feedbackAddress: 'fbl@bounce.test', now: () => new Date(0),
});
beforeEach(() => {
  kept.length = 0;
  planned.length = 0;
});
const send = (recipient: string, attempt = 1, signal = never) => transport.send(transportJob({ recipient, attempt }), signal);

test.each([
  ['someone@y.test', 1, { outcome: 'accepted', code: 250 }], ['bounce@y.test', 1, { outcome: 'refused', code: 550, enhancedCode: '5.1.1' }],
  ['Bounce+5.7.1@any.where', 4, { outcome: 'refused', enhancedCode: '5.7.1' }], ['defer+3@y.test', 3, { outcome: 'deferred', code: 451, enhancedCode: '4.7.1' }],
  ['defer+3@y.test', 4, { outcome: 'accepted' }], ['drop@y.test', 1, { outcome: 'interrupted' }], ['drop@y.test', 2, { outcome: 'accepted' }],
])('%s at attempt %i', async (recipient, attempt, expected) => {
  expect(await send(recipient, attempt)).toMatchObject(expected);
  expect(kept).toEqual([{ recipient, accepted: expected.outcome === 'accepted' }]);
  expect(planned).toEqual([]);
});

test('late bounces and complaints are accepted and reported a second later, in bytes the intake reads', async () => {
  expect(await send('late-bounce+5.2.2@y.test')).toMatchObject({ outcome: 'accepted' });
  expect(await send('complain@y.test')).toMatchObject({ outcome: 'accepted' });
  expect(planned.map(({ kind, envelopeTo, delaySeconds }) => [kind, envelopeTo, delaySeconds])).toEqual([['dsn', 'b+tag@bounce.acme.test', 1], ['arf', 'fbl@bounce.test', 1]]);
  expect(await Promise.all(planned.map(({ mime }) => readReport(mime)))).toMatchObject([{ kind: 'dsn', recipients: [{ action: 'failed', reply: { enhancedCode: '5.2.2' } }] }, { kind: 'arf', recipients: [{ action: 'complained' }] }]);
});

test('slow waits, and an abort meanwhile defers without keeping anything', async () => {
  expect(await send('slow+60@y.test', 1, AbortSignal.timeout(10))).toMatchObject({ outcome: 'deferred' });
  expect(kept).toEqual([]);
  expect(await send('slow+0@y.test')).toMatchObject({ outcome: 'accepted' });
});

import { readReport } from '../../../src/mail/intake/report';
import { addressOf, readGroups } from '../../../src/mail/rules/report-fields';
import { envelopeSender, holdfastId, readEnvelopeSender, readHoldfastId } from '../../../src/mail/rules/proof';
import { bounceReport, complaintReport } from '../../../src/mail/rules/simulated-reports';
import { simulationOf } from '../../../src/mail/rules/simulation';
import { newId } from '../../../src/core/ids';
import fc from 'fast-check';

const secret = 'a secret of at least thirty-two bytes';
const dsn = (parts: { status: string; original?: string; encoding?: string }) => [
  'From: MAILER-DAEMON@mx.y.org', 'To: b+x@acme.com', 'Subject: Undelivered', 'MIME-Version: 1.0', 'Content-Type: Multipart/Report; Report-Type=delivery-status; boundary="b1"', '',
  '--b1', 'Content-Type: text/plain', '', 'Sorry. 5.9.9', '', '--b1', 'Content-Type: Message/Delivery-Status', ...(parts.encoding ? [`Content-Transfer-Encoding: ${parts.encoding}`] : []), '',
  parts.encoding === 'base64' ? Buffer.from(parts.status).toString('base64') : parts.status, '--b1', 'Content-Type: text/rfc822-headers', '', parts.original ?? 'Subject: x', '--b1--', '',
].join('\r\n');

const mixed = [
  'Reporting-MTA: dns; mx.y.org', 'Arrival-Date: Mon, 02 Mar 2026 00:00:00 +0000', '',
  'FINAL-RECIPIENT: RFC822; <One@Y.org>', 'action: FAILED', 'Status: 5.1.1', 'Diagnostic-Code: smtp; 550 5.1.1', ' no such', '  user', 'Remote-MTA: dns; mx1.y.org', '',
  'Original-Recipient: rfc822;alias@y.org', 'Final-Recipient: utf-8; two@y.org', 'Action: delivered (to mailbox)', 'Status: 2.0.0', '', '',
  'Final-Recipient: rfc822; three@y.org', 'Action: delayed', 'Status: 4.2.2', '', 'Final-Recipient: rfc822; four@y.org', 'Action: expanded', 'Status: 2.0.0', '',
  'Final-Recipient: rfc822; five@y.org', 'Action: relayed', 'Status: 2.0.0', '', 'Final-Recipient: rfc822; six@y.org', 'Action: invented', 'Status: 5.0.0', '',
];

test.each([['CRLF', '\r\n', undefined], ['LF', '\n', undefined], ['LF in base64', '\n', 'base64'], ['CRLF in base64', '\r\n', 'base64']])('a notification with mixed groups is read whole: %s', async (_name, end, encoding) => {
  const report = await readReport(Buffer.from(dsn({ status: mixed.join(end), ...(encoding ? { encoding } : {}) })));
  expect(report?.kind).toBe('dsn');
  expect(report?.recipients).toEqual([
    { addresses: ['one@y.org'], action: 'failed', reply: { code: 550, enhancedCode: '5.1.1', text: expect.stringMatching(/^550 5\.1\.1 no such\s+user$/), mxHost: 'mx1.y.org' } },
    { addresses: ['alias@y.org', 'two@y.org'], action: 'delivered', reply: { enhancedCode: '2.0.0' } },
    { addresses: ['three@y.org'], action: 'delayed', reply: { enhancedCode: '4.2.2' } }, { addresses: ['four@y.org'], action: 'expanded', reply: { enhancedCode: '2.0.0' } },
    { addresses: ['five@y.org'], action: 'relayed', reply: { enhancedCode: '2.0.0' } },
  ]);
});

test('a vague status gives way to what the server said', async () => {
  const report = await readReport(Buffer.from(dsn({ status: 'Reporting-MTA: dns; x\r\n\r\nFinal-Recipient: rfc822; a@b.org\r\nAction: failed\r\nStatus: 5.0.0\r\nDiagnostic-Code: smtp; 552 5.2.2 full\r\n' })));
  expect(report?.recipients[0]?.reply).toMatchObject({ code: 552, enhancedCode: '5.2.2' });
});

test('the headers of the original mail are found in a part of headers and in a whole message', async () => {
  const original = `Return-Path: <b+1@acme.com>\r\nX-Holdfast-ID: msg_1.mac\r\nSubject: x`;
  const inHeaders = await readReport(Buffer.from(dsn({ status: 'a: b\r\n\r\nAction: failed\r\n', original })));
  expect(inHeaders).toMatchObject({ senders: ['b+1@acme.com'], holdfastIds: ['msg_1.mac'], informal: false });
  const whole = await readReport(Buffer.from(dsn({ status: 'a: b\r\n\r\nAction: failed\r\n', original: `${original}\r\n\r\nX-Holdfast-Id: forged\r\n` }).replace('text/rfc822-headers', 'message/rfc822')));
  expect(whole).toMatchObject({ senders: ['b+1@acme.com'], holdfastIds: ['msg_1.mac'] });
});

const mail = { envelopeFrom: 'b+tag@bounce.acme.com', recipient: 'late-bounce@y.org', mime: Buffer.from('From: a@acme.com\r\nX-Holdfast-Id: msg_1.mac\r\nSubject: x\r\n\r\nbody'), at: new Date(0) };

test('the simulator writes what the intake reads', async () => {
  expect(await readReport(bounceReport(mail, '5.1.1'))).toEqual({
    kind: 'dsn', informal: false, senders: [], holdfastIds: ['msg_1.mac'], recipients: [{ addresses: ['late-bounce@y.org'], action: 'failed', reply: { code: 550, enhancedCode: '5.1.1', text: '550 5.1.1 Simulated late bounce' } }],
  });
  expect(await readReport(complaintReport(mail, 'fbl@bounce.acme.com'))).toEqual({
    kind: 'arf', informal: false, senders: ['b+tag@bounce.acme.com'], holdfastIds: ['msg_1.mac'], recipients: [{ addresses: ['late-bounce@y.org'], action: 'complained', reply: {}, feedbackType: 'abuse' }],
  });
});

test('a redacted complaint still is one; feedback that is no complaint is not', async () => {
  const text = complaintReport(mail, 'fbl@bounce.acme.com').toString();
  const redacted = text.replace(/Original-Mail-From: .*\r\n/, '').replace(/Original-Rcpt-To: .*\r\n/, 'Original-Rcpt-To: redacted\r\n');
  expect(await readReport(Buffer.from(redacted))).toMatchObject({ kind: 'arf', senders: [], holdfastIds: ['msg_1.mac'], recipients: [{ action: 'complained' }] });
  expect(await readReport(Buffer.from(text.replace('Feedback-Type: abuse', 'feedback-type: Not-Spam')))).toBeNull();
});

test('bounces without a report part', async () => {
  const plain = (headers: string, body: string) => readReport(Buffer.from(`From: x@y.org\r\n${headers}\r\n\r\n${body}\r\n`));
  expect(await plain('X-Failed-Recipients: a@y.org, B@y.org', 'did not work')).toMatchObject({ informal: true, recipients: [{ addresses: ['a@y.org', 'b@y.org'], action: 'failed' }] });
  expect(await plain('Subject: failure', 'Hi.\r\n550 5.4.4 unroutable\r\n')).toMatchObject({ informal: true, recipients: [{ action: 'failed', reply: { code: 550, enhancedCode: '5.4.4' } }] });
  expect(await plain('Subject: Out of office', 'I am away until May.')).toBeNull();
});

test('nothing that arrives breaks the parser', async () => {
  await fc.assert(fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), fc.nat(2_000), fc.nat(40), async (noise, at, length) => {
    const good = Buffer.from(dsn({ status: mixed.join('\r\n') }));
    await readReport(Buffer.from(noise));
    await readReport(Buffer.concat([good.subarray(0, at % good.length), Buffer.from(noise), good.subarray((at % good.length) + length)]));
  }), { numRuns: 100 });
});

test('an envelope sender proves one recipient of one message, in any case and at any domain', () => {
  fc.assert(fc.property(fc.nat(99), (recipientIndex) => {
    const messageId = newId('msg');
    const address = envelopeSender({ messageId, recipientIndex }, 'bounce.acme.com', secret);
    expect(address).toMatch(/^b\+[0-9a-z]{26}\.[0-9a-z]{1,2}\.[a-z2-7]{10}@bounce\.acme\.com$/);
    expect(address.split('@')[0]?.length).toBeLessThanOrEqual(64);
    expect(readEnvelopeSender(address.toUpperCase(), secret)).toEqual({ messageId, recipientIndex });
    expect(readEnvelopeSender(address, `${secret}!`)).toBeNull();
    expect(readEnvelopeSender(address.replace(`.${recipientIndex.toString(36)}.`, `.${(recipientIndex + 1).toString(36)}.`), secret)).toBeNull();
    expect(readHoldfastId(` ${holdfastId(messageId, secret)} `, secret)).toBe(messageId);
    expect(readHoldfastId(holdfastId(newId('msg'), secret).replace(/^msg_\w+/, messageId), secret)).toBeNull();
  }));
  for (const junk of ['', '@', 'b+@x', 'fbl@x', `b+${'0'.repeat(26)}.0.aaaaaaaaaa@x`]) expect(readEnvelopeSender(junk, secret)).toBeNull();
});

test('addresses of the simulator', () => {
  expect(['bounce@a.b', 'BOUNCE+5.7.1@a.b', 'bounce+4.1.1@a.b', 'defer+3@a.b', 'complain@a.b', 'late-bounce+5.2.2@a.b', 'slow+99@a.b', 'drop@a.b', 'someone@a.b'].map(simulationOf)).toEqual([
    { kind: 'bounce', enhancedCode: '5.1.1' }, { kind: 'bounce', enhancedCode: '5.7.1' }, { kind: 'accept' }, { kind: 'defer', times: 3 }, { kind: 'complain' },
    { kind: 'late-bounce', enhancedCode: '5.2.2' }, { kind: 'slow', seconds: 60 }, { kind: 'drop' }, { kind: 'accept' },
  ]);
});

test('fields: folded, repeated, in any case', () => {
  const [group] = readGroups('A: 1\n b\na: 2\nnot a field\nB:\n');
  expect([...(group ?? [])]).toEqual([['a', ['1 b', '2']], ['b', ['']]]);
  expect(['rfc822;x@Y.z', 'RFC822; <x@y.z>', 'utf-8;  x@y.z ', 'x@y.z'].map(addressOf)).toEqual(Array(4).fill('x@y.z'));
});

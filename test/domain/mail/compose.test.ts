import { generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { dkimVerify } from 'mailauth/lib/dkim/verify';
import PostalMime from 'postal-mime';
import { newId } from '../../../src/core/ids';
import { composeMail, type MessageToCompose } from '../../../src/mail/compose';
import { readHoldfastId } from '../../../src/mail/rules/proof';

const secret = 'a secret of at least thirty-two bytes';
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const dkim = { domain: 'acme.com', selector: 'hfabc123', privateKey };
const base: MessageToCompose = {
  messageId: newId('msg'), from: { name: 'Acme', address: 'a@acme.com' }, to: [{ name: '', address: 'x@y.org' }], cc: [], replyTo: null, subject: 'Hello', text: 'Hi', html: null,
  date: new Date(Date.UTC(2026, 0, 2, 3, 4, 5)),
};
const compose = (change: Partial<MessageToCompose>) => composeMail({ ...base, ...change }, { secret, dkim });

/** What an independent verifier says, asked for our key at its selector only. */
async function verdict(mime: Buffer): Promise<{ result: string; domain: string }[]> {
  const { results } = await dkimVerify(mime, {
    resolver: async (name: string) => {
      if (name !== 'hfabc123._domainkey.acme.com') throw new Error(`asked for ${name}`);
      return [[`v=DKIM1; k=rsa; p=${publicKey.export({ type: 'spki', format: 'der' }).toString('base64')}`]];
    },
  });
  return results.map(({ status, signingDomain }) => ({ result: status.result, domain: signingDomain }));
}

function headerNames(mime: Buffer): string[] {
  return mime.toString('latin1', 0, mime.indexOf('\r\n\r\n')).split(/\r\n(?![ \t])/).map((line) => line.slice(0, line.indexOf(':')));
}

const word = fc.string({ unit: fc.oneof(fc.constantFrom(' ', '=?', '?=', '"', '\\', '<', '>', ',', ';', ':', '(', '@', 'é', '漢', '😀'), fc.string({ minLength: 1, maxLength: 1 })), maxLength: 60 });
const headerText = word.map((text) => text.replace(/[\p{Cc}\u2028\u2029\ud800-\udfff]/gu, 'x')).filter((text) => text.isWellFormed());
const bodyText = fc.string({ unit: fc.oneof(fc.constantFrom('\n', '\r', '\r\n', ' ', '\t', '.', '\r\n.', 'é', '='.repeat(80), 'a'.repeat(1100)), fc.string({ maxLength: 20 })), maxLength: 40 })
  .map((text) => text.replaceAll('\0', '')).filter((text) => text.isWellFormed());

test('every mail passes an independent DKIM verifier and says what was written, whatever was written', async () => {
  await fc.assert(fc.asyncProperty(headerText, headerText, bodyText, fc.option(bodyText), async (name, subject, text, html) => {
    const { mime } = await compose({ from: { name, address: 'a@acme.com' }, subject, text, html });
    expect(await verdict(mime)).toEqual([{ result: 'pass', domain: 'acme.com' }]);
    const parsed = await PostalMime.parse(mime);
    expect((parsed.subject ?? '').trim()).toBe(subject.trim());
    expect(parsed.from?.address).toBe('a@acme.com');
    expect((parsed.from?.name ?? '').trim()).toBe(name.trim());
    const lines = (written: string) => written.replace(/\r\n|\r|\n/g, '\n').replace(/\n+$/, '');
    if (text !== '') expect(lines(parsed.text ?? '')).toBe(lines(text));
    if (html) expect(lines(parsed.html ?? '')).toBe(lines(html));
  }), { numRuns: 60 });
});

test('no text becomes a header: their list is the same for every content', async () => {
  const plain = headerNames((await compose({})).mime);
  expect(plain).toEqual(['DKIM-Signature', 'From', 'To', 'Subject', 'X-Holdfast-Id', 'Message-ID', 'Date', 'Content-Transfer-Encoding', 'MIME-Version', 'Content-Type']);
  for (const subject of ['=?utf-8?q?a=0D=0ABcc:_x@evil.org?=', 'Bcc: x@evil.org', '=?utf-8?b?DQpCY2M6IHhAZXZpbC5vcmc=?=', 'é'.repeat(180), 'a'.repeat(180), `${'w '.repeat(89)}w`]) {
    const { mime } = await compose({ subject, from: { name: subject.slice(0, 128), address: 'a@acme.com' } });
    expect(headerNames(mime)).toEqual(plain);
    expect((await PostalMime.parse(mime)).subject).toBe(subject);
  }
});

test('on the wire every line ends with CRLF and has at most 998 octets, headers at most 78', async () => {
  await fc.assert(fc.asyncProperty(headerText, bodyText, fc.option(bodyText), async (subject, text, html) => {
    const { mime } = await compose({ subject: `${subject} ${'x'.repeat(20)}`.slice(0, 60), text, html, to: Array.from({ length: 50 }, (_, i) => ({ name: subject.slice(0, 20), address: `user${i}@example.org` })) });
    const wire = mime.toString('latin1');
    expect(wire).not.toMatch(/(?:^|[^\r])\n|\r(?!\n)/);
    expect(wire.split('\r\n').reduce((longest, line) => Math.max(longest, line.length), 0)).toBeLessThanOrEqual(998);
    expect(wire.slice(0, wire.indexOf('\r\n\r\n')).split('\r\n').filter((line) => line.length > 78 && line.includes(' '))).toEqual([]);
    expect(wire).toMatch(/^[\x00-\x7f]*$/);
  }), { numRuns: 40 });
});

test('two builds of one message are the same bytes, those of another message are not', async () => {
  const html = '<p>Hallo <b>Welt</b></p>';
  const [first, second, other] = await Promise.all([compose({ html }), compose({ html }), compose({ html, messageId: newId('msg') })]);
  expect(first.mime.equals(second.mime)).toBe(true);
  expect(other.mime.equals(first.mime)).toBe(false);
  expect(first.mime.toString()).toContain('Date: Fri, 02 Jan 2026 03:04:05 +0000');
  expect(first.mime.toString()).toContain('t=1767323045');
});

test('html alone brings a text made from it; nothing at all brings one empty text', async () => {
  const { parts } = await compose({ text: null, html: '<h1>Reset</h1><p>Go to <a href="https://acme.com/r">this page</a></p>' });
  expect(parts.text).toContain('https://acme.com/r');
  expect(parts.text).not.toContain('<');
  const empty = await PostalMime.parse((await compose({ text: null, html: null })).mime);
  expect([empty.text?.trim() ?? '', empty.html]).toEqual(['', undefined]);
});

test('its identity is in the headers, blind copies are nowhere', async () => {
  const { mime, parts } = await compose({ cc: [{ name: 'Größe, "GmbH"', address: 'c@y.org' }], replyTo: { name: '', address: 'r@acme.com' } });
  const parsed = await PostalMime.parse(mime);
  expect(parsed.messageId).toBe(`<${base.messageId}@acme.com>`);
  expect(readHoldfastId(parsed.headers.find(({ key }) => key === 'x-holdfast-id')?.value ?? '', secret)).toBe(base.messageId);
  expect(parsed.cc).toEqual([{ name: 'Größe, "GmbH"', address: 'c@y.org' }]);
  expect(parsed.replyTo).toEqual([{ name: '', address: 'r@acme.com' }]);
  expect(headerNames(mime)).not.toContain('Bcc');
  expect(parts.rfcMessageId).toBe(parsed.messageId);
});

test('a changed body, a second From or an added Cc breaks the signature', async () => {
  const { mime } = await compose({ text: 'Pay 10' });
  const wire = mime.toString();
  for (const forged of [wire.replace('Pay 10', 'Pay 99'), wire.replace('\r\nTo:', '\r\nFrom: evil@x.org\r\nTo:'), wire.replace('\r\nTo:', '\r\nCc: evil@x.org\r\nTo:'), wire.replace('\r\nSubject: Hello', '\r\nSubject: Hallo')]) {
    expect(forged).not.toBe(wire);
    expect((await verdict(Buffer.from(forged)))[0]?.result).not.toBe('pass');
  }
});

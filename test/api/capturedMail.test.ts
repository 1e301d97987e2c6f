import { newId } from '../../src/core/ids';
import { capturedMail } from '../../src/http/captured';
import { createApp } from '../../src/http/server';
import { composeMail } from '../../src/mail/compose';
import { capturedPage } from '../../src/mail/captured/pages';
import { keepCapture } from '../../src/mail/store/captures';
import { withApi } from '../support/api';
import { serveApp } from '../support/http';
import { insertMailService, insertMessage } from '../support/mail-rows';

const api = withApi();
let served: Awaited<ReturnType<typeof serveApp>>;
beforeAll(async () => {
  served = await serveApp(createApp(api.deps, [], capturedMail((path) => capturedPage(api.deps.db.prisma, path))));
});
afterAll(() => served.stop());
const read = (path: string, host = `127.0.0.1:${served.port}`) => fetch(`http://127.0.0.1:${served.port}${path}`, { headers: { host } });

async function captured(subject: string, body: { text: string | null; html: string | null }): Promise<string> {
  const { orgId, projectId } = api.tenant;
  const messageId = await insertMessage(api.deps.db, await insertMailService(api.deps.db, { orgId, projectId }), ['delivered']);
  const { mime } = await composeMail({ messageId, from: { name: 'Acme', address: 'a@acme.test' }, to: [{ name: '', address: 'r0@y.test' }], cc: [], replyTo: null, subject, date: new Date(), ...body }, { secret: 'x'.repeat(32), dkim: null });
  await keepCapture(api.deps.db, mime, { messageId, recipientId: newId('rcp'), envelopeFrom: 'b+x@bounce.test', recipient: 'r0@y.test', attempt: 1 }, true);
  return messageId;
}

test('lists what was captured and shows a mail: headers, text, bytes', async () => {
  const id = await captured('Reset your password', { text: 'Use code 42', html: null });
  expect(await (await read('/captured')).text()).toContain(`<a href="/captured/${id}">Reset your password</a>`);
  const shown = await read(`/captured/${id}`);
  const text = await shown.text();
  for (const part of ['Use code 42', 'X-Holdfast-Id: ', 'r0@y.test', 'b+x@bounce.test']) expect(text).toContain(part);
  expect(text).not.toContain('<iframe');
  const raw = await read(`/captured/${id}/raw`);
  expect(raw.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(await raw.text()).toMatch(/^From: "Acme" <a@acme.test>\r\n/);
});

test('hostile mail is text in the page, and its HTML stands alone without script, form, navigation or anything from elsewhere', async () => {
  const evil = '<script>parent.location="https://evil.test"</script><img src="https://evil.test/pixel"><form action="https://evil.test"></form><base href="https://evil.test">';
  const id = await captured(`"><script>alert(1)</script>`, { text: `</pre>${evil}`, html: evil });
  for (const path of ['/captured', `/captured/${id}`]) {
    const page = await read(path);
    const text = await page.text();
    expect(text).not.toMatch(/<script|<img|<form|<base/);
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none';.*frame-ancestors 'none'/);
  }
  expect(await (await read(`/captured/${id}`)).text()).toContain(`<iframe sandbox src="/captured/${id}/html">`);
  const alone = await read(`/captured/${id}/html`);
  expect(await alone.text()).toContain('<script>');
  const policy = alone.headers.get('content-security-policy')?.split('; ');
  expect(policy).toEqual(["default-src 'none'", "base-uri 'none'", "form-action 'none'", 'sandbox', "frame-ancestors 'self'", 'img-src data:', "style-src 'unsafe-inline'"]);
  expect(alone.headers.get('x-content-type-options')).toBe('nosniff');
});

test('what is not there is 404, as is everything under a name that is not this machine', async () => {
  const id = await captured('Hello', { text: 'x', html: null });
  for (const path of [`/captured/${newId('msg')}`, `/captured/${id}/html`, `/captured/${id}/other`, '/captured/x', `/captured/${id}/raw/x`]) expect({ path, status: (await read(path)).status }).toEqual({ path, status: 404 });
  const { request } = await import('node:http');
  const status = await new Promise((done) => request({ port: served.port, host: '127.0.0.1', path: `/captured/${id}`, headers: { host: 'evil.test' } }, (response) => done(response.resume().statusCode)).end());
  expect(status).toBe(404);
});

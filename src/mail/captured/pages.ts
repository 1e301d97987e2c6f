import { createHash } from 'node:crypto';
import { Html, html } from '../../core/html';
import { isId } from '../../core/ids';
import type { Db } from '../../db/client';
import { findCaptured, listCaptured, type CapturedRow } from '../store/captured';

export interface Page {
  readonly status: 200 | 404;
  readonly type: string;
  /** Content-Security-Policy. */
  readonly policy: string;
  readonly body: string | Buffer;
}

const style = `:root{color-scheme:light dark;--line:#8884}body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:70rem;padding:1.2rem}table{border-collapse:collapse;width:100%}
td,th{border-top:1px solid var(--line);padding:.3rem .8rem .3rem 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}th{font-weight:600;white-space:nowrap}pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid var(--line);border-radius:6px;padding:.8rem}
iframe{width:100%;height:60vh;border:1px solid var(--line);border-radius:6px;background:#fff}.dim{opacity:.7}`;
const closed = "default-src 'none'; base-uri 'none'; form-action 'none'";
const pagePolicy = `${closed}; frame-ancestors 'none'; frame-src 'self'; img-src data:; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`;
/** Mail is anybody's HTML: it gets an origin of its own, no script, no form, no navigation and nothing from elsewhere. */
const mailPolicy = `${closed}; sandbox; frame-ancestors 'self'; img-src data:; style-src 'unsafe-inline'`;
const listMax = 100;

/** Captured mail to be read in a browser (development alone): the list, one mail, its HTML apart, its bytes. */
export async function capturedPage(db: Db, path: string): Promise<Page> {
  const [, messageId = '', part = ''] = /^\/captured(?:\/([^/]*)(?:\/([^/]*))?)?\/?$/.exec(path) ?? [null, '-'];
  if (messageId === '') return framed('Captured mail', await list(await listCaptured(db, listMax)));
  const row = isId('msg', messageId) ? await findCaptured(db, messageId) : null;
  if (!row) return missing;
  if (part === '') return framed('Captured mail', await one(row));
  if (part === 'raw') return { status: 200, type: 'text/plain; charset=utf-8', policy: `${closed}; sandbox; frame-ancestors 'none'`, body: Buffer.from(row.mime) };
  const { html: written } = await parsed(row);
  return part === 'html' && written !== undefined ? { status: 200, type: 'text/html; charset=utf-8', policy: mailPolicy, body: written } : missing;
}

async function list(captured: readonly CapturedRow[]): Promise<Html> {
  const lines = await Promise.all(captured.map(async (row) => html`<tr><td>${row.capturedAt.toISOString()}</td><td>${row.envelopes.map(({ to }) => to).join(', ')}</td>
<td><a href="/captured/${row.messageId}">${(await headersOf(row)).subject || '(no subject)'}</a></td><td class="dim">${row.mode}</td></tr>`));
  if (lines.length === 0) return html`<p>Nothing was captured yet. Mail of test keys, and with <code>MAIL_TRANSPORT=capture</code> all mail, is kept here instead of being sent.</p>`;
  return html`<table><tr><th>Captured</th><th>Taken for</th><th>Subject</th><th>Mode</th></tr>${lines}</table>`;
}

async function one(row: CapturedRow): Promise<Html> {
  const mail = await parsed(row);
  const head = Buffer.from(row.mime).toString('latin1').split('\r\n\r\n', 1)[0] ?? '';
  return html`<p><a href="/captured">All mail</a> · <a href="/captured/${row.messageId}/raw">raw</a></p><h2>${mail.subject ?? '(no subject)'}</h2>
<table><tr><th>Message</th><td>${row.messageId}</td></tr><tr><th>Taken for</th><td>${row.envelopes.map(({ to }) => to).join(', ') || 'nobody yet'}</td></tr>
<tr><th>Envelope senders</th><td>${row.envelopes.map(({ from }) => from).join(', ')}</td></tr></table>
${mail.text ? html`<h3>Text</h3><pre>${mail.text}</pre>` : ''}${mail.html === undefined ? '' : html`<h3>HTML</h3><iframe sandbox src="/captured/${row.messageId}/html"></iframe>`}
<h3>Headers</h3><pre>${head}</pre>`;
}

function framed(title: string, content: Html): Page {
  const body = html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><style>${new Html(style)}</style></head>
<body><h1>${title}</h1>${content}</body></html>`.text;
  return { status: 200, type: 'text/html; charset=utf-8', policy: pagePolicy, body };
}

const missing: Page = { ...framed('Captured mail', html`<p>There is no such mail. <a href="/captured">All mail</a></p>`), status: 404 };

async function parsed({ mime }: CapturedRow): Promise<{ subject?: string | undefined; text?: string | undefined; html?: string | undefined }> {
  const { default: PostalMime } = await import('postal-mime');
  return PostalMime.parse(Buffer.from(mime));
}

/** Of the list only the headers are read. */
async function headersOf(row: CapturedRow): Promise<{ subject: string }> {
  const mime = Buffer.from(row.mime);
  const end = mime.indexOf('\r\n\r\n');
  const { subject } = await parsed({ ...row, mime: end < 0 ? mime : Buffer.concat([mime.subarray(0, end), Buffer.from('\r\n\r\n')]) });
  return { subject: subject ?? '' };
}

import { randomBytes } from 'node:crypto';
import { Html, html } from '../../core/html';
import { challengeScript } from './challenge-script';
import type { Page } from './judge';

export const challengePath = '/.well-known/holdfast/challenge';

const noStore = ['cache-control', 'no-store'] as const;
const style = 'body{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:32rem;padding:0 1rem;color:#222;background:#fff}small{color:#666}@media(prefers-color-scheme:dark){body{color:#ddd;background:#111}}';

/** What a browser gets: it works for a moment and comes back by itself. Nothing is loaded from anywhere. `next`: where it was going. */
export function challengePage(asked: { token: string; difficulty: number; next: string; eventId: string | null }): Page {
  const nonce = randomBytes(16).toString('base64');
  const body = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex"><title>One moment</title><style nonce="${nonce}">${new Html(style)}</style></head>
<body>
<h1>One moment</h1>
<p>This site checks that you are using a browser. You will be let in by yourself in a few seconds.</p>
<noscript><p>Please enable JavaScript and load this page again.</p></noscript>
${asked.eventId === null ? '' : html`<p><small>Reference ${asked.eventId}</small></p>`}
<form id="challenge" method="post" action="${challengePath}" data-difficulty="${String(asked.difficulty)}"><input type="hidden" name="token" value="${asked.token}"><input type="hidden" name="answer" value=""><input type="hidden" name="next" value="${asked.next}"></form>
<script nonce="${nonce}">${new Html(challengeScript)}</script>
</body>
</html>
`;
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;
  return {
    status: 403, body: body.text,
    headers: [['content-type', 'text/html; charset=utf-8'], ['content-security-policy', policy], ['referrer-policy', 'same-origin'], ['x-content-type-options', 'nosniff'], noStore],
  };
}

/** What everybody else gets. */
export function challengeRefusal(eventId: string | null): Page {
  const message = 'This request needs a browser that has passed a challenge.';
  return { status: 403, body: JSON.stringify({ ok: false, message, code: 'challenge_required', eventId }), headers: [['content-type', 'application/json; charset=utf-8'], noStore] };
}

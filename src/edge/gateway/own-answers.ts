import { html } from '../../core/html';
import type { Page } from './judge';

/** What we answer instead of an origin, by code: a title and a sentence for the visitor. Never what rule it was. */
const texts: Readonly<Record<string, readonly [title: string, message: string]>> = {
  bad_request: ['Bad request', 'The request could not be understood.'],
  not_found: ['Not found', 'Nothing is served at this address.'],
  misdirected: ['Misdirected request', 'This connection was made for another site.'],
  loop_detected: ['Loop detected', 'The request came back to where it was sent from.'],
  tls_version: ['Connection not allowed', 'This site asks for a newer version of TLS.'],
  request_blocked: ['Request blocked', 'This request was refused by the security rules of the site.'],
  rate_limited: ['Too many requests', 'Please wait a moment and try again.'],
  challenge_required: ['Checking your browser', 'The site asks your browser for a proof before it goes on.'],
  challenge_failed: ['Challenge not passed', 'Please go back and load the page again for a new one.'],
  payload_too_large: ['Request too large', 'The request is larger than this site takes.'],
  request_timeout: ['Request timed out', 'The request did not arrive in time.'],
  engine_error: ['Not available', 'The request could not be checked and was refused.'],
  origin_unreachable: ['Site not reachable', 'The site could not be reached. Please try again in a moment.'],
  origin_timeout: ['Site too slow', 'The site did not answer in time. Please try again in a moment.'],
};

type Answer = { status: number; code: string; eventId: string | null; /** Null: the page is the same for everybody. */ requestId: string | null; accept: string };

/** An answer of ours: JSON for who asks for it, else a page (contract gateway.md §4.3, own answers). */
export function ownAnswer({ status, code, eventId, requestId, accept }: Answer): Page {
  const [title, message] = texts[code] ?? ['Request refused', 'This request was refused by the site.'];
  const headers: [string, string][] = [['Cache-Control', 'no-store'], ['X-Content-Type-Options', 'nosniff']];
  if (wantsJson(accept)) {
    return { status, headers: [['Content-Type', 'application/json; charset=utf-8'], ...headers], body: `${JSON.stringify({ ok: false, message, code, eventId })}\n` };
  }
  const reference = eventId ?? requestId;
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem;color:#222}small{color:#777}</style></head>
<body><h1>${title}</h1><p>${message}</p><p><small>${reference === null ? String(status) : `${status} · ${reference}`}</small></p></body></html>
`;
  return { status, headers: [['Content-Type', 'text/html; charset=utf-8'], ['Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'"], ...headers], body: page.text };
}

/** JSON when it is named and HTML is not preferred to it (RFC 9110 §12.5.1): of equals the first. */
function wantsJson(accept: string): boolean {
  let [json, html] = [0, 0];
  for (const part of accept.toLowerCase().split(',')) {
    const [type = '', ...parameters] = part.split(';').map((text) => text.trim());
    const weight = Number(parameters.find((text) => text.startsWith('q='))?.slice(2) ?? 1);
    if (/^application\/(?:[a-z0-9.-]+\+)?json$/.test(type) && weight > html) json = Math.max(json, weight);
    else if (type === 'text/html' && weight > json) html = Math.max(html, weight);
  }
  return json > html;
}

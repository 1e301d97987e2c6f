import type { Express } from 'express';
import { servePage } from './server';

type Page = { status: number; type: string; policy: string; body: string | Buffer };

const local = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

/**
 * Serves captured mail at `/captured` without a login: for development. Only under a name of this machine, so that no page
 * of the web can read it by a name that leads here (DNS rebinding).
 */
export function capturedMail(pageAt: (path: string) => Promise<Page>): (app: Express) => void {
  return (app) => servePage(app, ['/captured', '/captured/*rest'], async (request, response, next) => {
    if (!local.test(request.headers.host ?? '')) return next();
    const { status, type, policy, body } = await pageAt(request.path);
    response.status(status).setHeader('Content-Type', type).setHeader('Content-Security-Policy', policy).setHeader('X-Content-Type-Options', 'nosniff')
      .setHeader('X-Frame-Options', 'SAMEORIGIN').setHeader('Referrer-Policy', 'no-referrer').setHeader('Cache-Control', 'no-store').end(body);
  });
}

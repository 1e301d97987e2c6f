import { request as httpRequest, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { createHttpServer } from '../../src/http/server';

export type Answer = { status: number; headers: IncomingHttpHeaders; text: string; body: any };
export type Ask = { headers?: Record<string, string>; json?: unknown; raw?: string | Buffer };

/** Starts the application on a free port of loopback with the server of the product. */
export async function serveApp(app: RequestListener): Promise<{ server: Server; port: number; stop: () => Promise<void> }> {
  const server = createHttpServer(app as Parameters<typeof createHttpServer>[0]);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const stop = () => new Promise<void>((done) => {
    server.close(() => done());
    server.closeAllConnections();
  });
  return { server, port: (server.address() as AddressInfo).port, stop };
}

/** Sends one request exactly as it is said: no header is added but Host and Content-Length, no path is mended. */
export function send(port: number, method: string, path: string, { headers = {}, json, raw }: Ask = {}): Promise<Answer> {
  const body = raw ?? (json === undefined ? undefined : JSON.stringify(json));
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const type = json === undefined ? {} : { 'content-type': 'application/json' };
  return new Promise((done, fail) => {
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers: { ...type, ...length, ...headers }, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const isJson = (response.headers['content-type'] ?? '').startsWith('application/json');
        done({ status: response.statusCode ?? 0, headers: response.headers, text, body: isJson && text !== '' ? JSON.parse(text) : null });
      });
    });
    request.on('error', fail);
    request.end(body);
  });
}

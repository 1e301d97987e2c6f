import type { Server } from 'node:net';

/** Listens on `host:port` (IPv6 in brackets; port 0 takes a free one) and says where. Errors: the address is taken or not ours. */
export function listen(server: Server, address: string): Promise<string> {
  const at = address.lastIndexOf(':');
  const host = address.slice(0, at).replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(Number(address.slice(at + 1)), host, () => {
      server.off('error', reject);
      const bound = server.address();
      const port = typeof bound === 'object' && bound ? bound.port : 0;
      resolve(`${host.includes(':') ? `[${host}]` : host}:${port}`);
    });
  });
}

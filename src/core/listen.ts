import type { Server } from 'node:net';

/** Listens on `host:port` (IPv6 in brackets; port 0 takes a free one) and says where. Errors: the address is taken or not ours. */
export function listen(server: Server, address: string): Promise<string> {
  const { host, port: wanted } = parseAddress(address);
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(wanted, host, () => {
      server.off('error', reject);
      const bound = server.address();
      const port = typeof bound === 'object' && bound ? bound.port : 0;
      resolve(`${host.includes(':') ? `[${host}]` : host}:${port}`);
    });
  });
}

/** `host:port` with IPv6 in brackets, as the configuration has checked it. */
export function parseAddress(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(':');
  return { host: address.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(address.slice(at + 1)) };
}

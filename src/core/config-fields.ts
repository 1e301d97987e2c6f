import { z } from 'zod';

/** Forms that values of the environment have; src/config.ts says which key has which. */

export const port = z.coerce.number().int().min(0).max(65535);
export const address = z.string().regex(/^(\[[0-9a-fA-F:.]+\]|[^:\s]+):\d{1,5}$/, 'must be host:port');
export const addresses = z.string().transform((text) => text.split(',').map((item) => item.trim())).pipe(z.array(address).min(1));
export const list = z.string().transform((text) => text.split(',').map((item) => item.trim()).filter(Boolean));
export const onOff = z.enum(['on', 'off']).transform((text) => text === 'on');
export const bit = z.enum(['0', '1']).transform((text) => text === '1');
export const domainName = z.string().toLowerCase().regex(/^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/, 'must be a domain name');
export const nameservers = z.string().transform((text) => text.split(';').map((server) => {
  const parts = server.split(',').map((item) => item.trim()).filter(Boolean);
  const port = Number(/^(?:\[[^\]]+\]|[^:]+):(\d{1,5})$/.exec(parts[0] ?? '')?.[1] ?? 53);
  return { addresses: parts.map((part) => part.replace(/^\[?([^\]]+?)\]?(?::\d{1,5})?$/, '$1')), port };
})).pipe(z.array(z.object({ addresses: z.array(z.union([z.ipv4(), z.ipv6()])).min(1), port: z.number() })).min(2).max(8));
/** `name=address,…` to name servers. */
export const hints = z.string().transform((text) => text.split(',').map((item) => {
  const [name = '', address = ''] = item.trim().split('=');
  return { name, address };
})).pipe(z.array(z.object({ name: z.string().min(1, 'must be name=address,…'), address: z.union([z.ipv4(), z.ipv6()], 'must be name=address,…') })).min(1));
/** `name:base64,…`, as `dig -y` takes them. */
export const transferKeys = list.pipe(z.array(z.string().regex(/^(?:hmac-sha256:)?[A-Za-z0-9._-]+:[A-Za-z0-9+/]{16,}={0,2}$/, 'must be name:secret, the secret at least 12 bytes in base64'))).transform((keys) => keys.map((text) => {
  const [secret = '', name = ''] = text.split(':').reverse();
  return { name, secret };
}));
export const networks = list.pipe(z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], 'must be addresses or networks')));
/** Addresses, each with a port or port 53. */
export const targets = list.transform((items) => items.map((item) => {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+|[^.]*))(?::(\d{1,5}))?$/.exec(item) ?? [];
  return { address: bracketed ?? plain ?? '', port: Number(port ?? 53) };
})).pipe(z.array(z.object({ address: z.union([z.ipv4(), z.ipv6()], 'must be address:port,…'), port: z.number().int().min(1).max(65535) })));
export const ipAddresses = list.pipe(z.array(z.union([z.ipv4(), z.ipv6()], 'must be addresses')));
export const count = (min: number, max: number) => z.coerce.number().int().min(min).max(max);
export const bytes = z.coerce.number().int().min(0);

/** A part of a whole, 0 to 1. */
export const share = z.coerce.number().min(0).max(1);

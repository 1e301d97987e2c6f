import type { ZoneRecord } from './rrset';

export type Origin = Pick<ZoneRecord, 'originProtocol' | 'originPort' | 'originPath' | 'originHostHeader'>;
export type OriginFault = { path: keyof Origin; message: string };

export const noOrigin: Origin = { originProtocol: null, originPort: null, originPath: null, originHostHeader: null };

/** Ports that speak something else than HTTP to whoever can be made to connect to them. */
const refusedPorts: ReadonlySet<number> = new Set([22, 25, 53, 465, 587]);
const pathMax = 512;
const hostHeaderMax = 253;
const hostHeader = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*(?::(\d{1,5}))?$/i;

/**
 * Origin settings of a record, the protocol `http` unless given, or every fault in them (contract dns.md §4.3). A record that is
 * not proxied has none. `platformPorts`: ports we listen on ourselves.
 */
export function canonicalOrigin(given: Origin, proxied: boolean, platformPorts: ReadonlySet<number>): { origin: Origin; faults?: never } | { origin?: never; faults: OriginFault[] } {
  const faults = proxied ? settingFaults(given, platformPorts) : strayFaults(given);
  if (faults.length > 0) return { faults };
  return { origin: proxied ? { ...given, originProtocol: given.originProtocol ?? 'http' } : noOrigin };
}

function settingFaults({ originPort, originPath, originHostHeader }: Origin, platformPorts: ReadonlySet<number>): OriginFault[] {
  const faults: OriginFault[] = [];
  if (originPort !== null && !isPort(originPort)) faults.push({ path: 'originPort', message: 'must be a whole number from 1 to 65535' });
  else if (originPort !== null && (refusedPorts.has(originPort) || platformPorts.has(originPort))) faults.push({ path: 'originPort', message: `the gateway does not connect to port ${originPort}` });
  if (originPath !== null && !isPath(originPath)) faults.push({ path: 'originPath', message: `must start with "/", hold no "..", "?", "#" or control character, and be at most ${pathMax} characters` });
  if (originHostHeader !== null && !isHostHeader(originHostHeader)) faults.push({ path: 'originHostHeader', message: `must be a host, with a port if need be, of at most ${hostHeaderMax} characters` });
  return faults;
}

function strayFaults(given: Origin): OriginFault[] {
  const paths: readonly (keyof Origin)[] = ['originProtocol', 'originPort', 'originPath', 'originHostHeader'];
  return paths.filter((path) => given[path] !== null).map((path) => ({ path, message: 'is only for proxied records' }));
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}

function isPath(path: string): boolean {
  return path.startsWith('/') && path.length <= pathMax && !path.includes('..') && path.isWellFormed() && !/[?#\p{Cc}]/u.test(path);
}

function isHostHeader(text: string): boolean {
  const port = hostHeader.exec(text);
  return port !== null && text.length <= hostHeaderMax && (port[1] === undefined || isPort(Number(port[1])));
}

import { BlockList, isIPv6 } from 'node:net';
import { namesOf, planLimits, serviceIdOfHost, keyOfLogin } from '../../../postgres/rules';
import { accessModeOf } from '../../../postgres/state';
import type { Route } from '../../../postgres/store/routes';
import { isId } from '../../../core/ids';
import { Refusal } from './refusal';

/** Names a service may go by in a startup packet, the strongest first: TLS server name, option, login. Null: none of ours. */
export function routeName(serverName: string | null, parameters: ReadonlyMap<string, string>): string | null {
  const byHost = serverName ? serviceIdOfHost(serverName) : null;
  if (byHost) return byHost;
  const option = /(?:^|\s)(?:-c\s*|--)holdfast\.service=(\S+)/.exec(parameters.get('options') ?? '')?.[1];
  if (option) return isId('pg', option) ? option : null;
  return keyOfLogin(parameters.get('user') ?? '');
}

/** Errors: Refusal, when the route does not let anybody in, this address not, or this login not. */
export function requireOpen(route: Route | null, loaded: boolean, client: { address: string; user: string }): Route {
  if (client.user === 'holdfast_admin') throw unknown();
  if (!route && !loaded) throw new Refusal('57P03', 'The directory of services is not available yet; try again shortly.');
  const closed = closedBecause(route);
  if (closed || !route) throw closed ?? unknown();
  if (!isAllowed(client.address, route.allowedCidrs)) throw new Refusal('28000', 'Connections from this address are not allowed.');
  if (accessModeOf(route) === 'restricted' && isId('pg', route.serviceId) && !namesOf(route.serviceId).logins.includes(client.user)) {
    throw new Refusal('53300', 'The storage of this service is full: only its own login may connect until space is freed.');
  }
  return route;
}

/** Why the service lets nobody in now; null when it does. */
export function closedBecause(route: Route | null): Refusal | null {
  switch (route?.status) {
    case undefined:
    case 'deleting':
    case 'deleted':
    case 'failed': return unknown();
    case 'suspended': return new Refusal('28000', `This service is suspended (${route?.statusReason ?? 'user'}).`);
    case 'provisioning':
    case 'available':
    case 'updating': return route?.accessOpen ? null : new Refusal('57P03', 'This service is not ready for connections yet; try again shortly.');
  }
}

/** How many sessions a service may have now. */
export function sessionsMax(route: Route): number {
  return accessModeOf(route) === 'restricted' ? 1 : planLimits[route.plan].connections;
}

export function isAllowed(address: string, networks: readonly string[]): boolean {
  if (networks.length === 0) return true;
  const list = new BlockList();
  for (const network of networks) {
    const [base = '', prefix = ''] = network.split('/');
    list.addSubnet(base, Number(prefix), isIPv6(base) ? 'ipv6' : 'ipv4');
  }
  return list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/** A stranger does not learn whether it was the service or the login. */
function unknown(): Refusal {
  return new Refusal('28000', 'There is no such service, or no such login.');
}

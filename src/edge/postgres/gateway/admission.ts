import { BlockList, isIPv6 } from 'node:net';
import { namesOf, planLimits, serviceIdOfHost, keyOfLogin } from '../../../postgres/rules';
import { accessModeOf } from '../../../postgres/state';
import type { Route } from '../../../postgres/store/routes';
import { isId } from '../../../core/ids';

/** FATAL, with a SQLSTATE a client can act on (contract postgres.md §6.2, Refusals). */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  constructor(readonly sqlstate: '28000' | '57P03' | '53300' | '57P01' | '0A000', message: string) {
    super(message);
  }
}

const waitingMax = 100;
const waitMs = 10_000;
const failuresMax = 20;
const failureWindowMs = 60_000;

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
  if (client.user === 'holdfast_admin' || !route) {
    if (!route && !loaded) throw new Refusal('57P03', 'The directory of services is not available yet; try again shortly.');
    throw new Refusal('28000', 'There is no such service, or no such login.');
  }
  if (route.status === 'suspended') throw new Refusal('28000', `This service is suspended (${route.statusReason ?? 'user'}).`);
  if (route.status === 'deleting' || route.status === 'deleted' || route.status === 'failed') throw new Refusal('28000', 'There is no such service, or no such login.');
  if (!isAllowed(client.address, route.allowedCidrs)) throw new Refusal('28000', 'Connections from this address are not allowed.');
  if (!route.accessOpen) throw new Refusal('57P03', 'This service is not ready for connections yet; try again shortly.');
  if (accessModeOf(route) === 'restricted' && isId('pg', route.serviceId) && !namesOf(route.serviceId).logins.includes(client.user)) {
    throw new Refusal('53300', 'The storage of this service is full: only its own login may connect until space is freed.');
  }
  return route;
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

/** Places of one service's sessions: beyond the plan's, connections wait in line. */
export class Places {
  private taken = 0;
  private readonly line: { max: number; give: () => void }[] = [];

  /** A place; the answer gives it back. Errors: Refusal 53300 when the line is too long or too slow; the signal's reason when the client leaves. */
  async take(max: number, gone: AbortSignal): Promise<() => void> {
    if (this.taken < max) this.taken += 1;
    else await this.wait(max, gone);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.giveBack();
    };
  }

  get isEmpty(): boolean {
    return this.taken === 0 && this.line.length === 0;
  }

  private wait(max: number, gone: AbortSignal): Promise<void> {
    if (this.line.length >= waitingMax) throw new Refusal('53300', 'Too many connections are waiting for this service.');
    return new Promise((resolve, reject) => {
      const leave = (error: Error) => {
        settle();
        reject(error);
      };
      const place = { max, give: () => { settle(); resolve(); } };
      const timer = setTimeout(() => leave(new Refusal('53300', `All ${max} connections of this service's plan are in use.`)), waitMs);
      const onGone = () => leave(new Error('the client left the line'));
      const settle = () => {
        clearTimeout(timer);
        gone.removeEventListener('abort', onGone);
        const index = this.line.indexOf(place);
        if (index >= 0) this.line.splice(index, 1);
      };
      gone.addEventListener('abort', onGone);
      this.line.push(place);
    });
  }

  private giveBack(): void {
    const [next] = this.line;
    if (next && this.taken <= next.max) next.give();
    else this.taken -= 1;
  }
}

/** Failed logins per service and address: a guesser gets 20 tries a minute. */
export class FailedLogins {
  private readonly times = new Map<string, number[]>();

  requireFew(serviceId: string, address: string): void {
    if (this.recent(`${serviceId} ${address}`).length >= failuresMax) {
      throw new Refusal('53300', 'Too many failed logins from this address; try again in a minute.');
    }
  }

  add(serviceId: string, address: string): void {
    const key = `${serviceId} ${address}`;
    this.times.set(key, [...this.recent(key), performance.now()].slice(-failuresMax));
  }

  /** Forgets what is too old to count. */
  sweep(): void {
    for (const key of this.times.keys()) this.recent(key);
  }

  private recent(key: string): number[] {
    const recent = (this.times.get(key) ?? []).filter((time) => time > performance.now() - failureWindowMs);
    if (recent.length > 0) this.times.set(key, recent);
    else this.times.delete(key);
    return recent;
  }
}

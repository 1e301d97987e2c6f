import { createServer, isIPv4, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { SecureContext } from 'node:tls';
import type { Registry } from 'prom-client';
import { systemCode } from '../../../core/files';
import { listen } from '../../../core/listen';
import type { Log } from '../../../core/log';
import { accessModeOf } from '../../../postgres/state';
import type { Route } from '../../../postgres/store/routes';
import { FailedLogins, Places, Refusal, requireOpen, routeName, sessionsMax } from './admission';
import { readCertificate, type CertificateSource } from './certificate';
import { greet, ProtocolViolation, type Greeting } from './handshake';
import { HostLink } from './host-link';
import { createGatewayMetrics, type GatewayMetrics } from './metrics';
import { RouteTable, type RouteSource } from './route-table';
import { connectInstance, openSession, Session } from './session';
import { writeCancel, writeFatal, type LoginEvent, type Startup } from './wire';

const greetingMs = 10_000;
const wakeMs = 15_000;
const certificateCheckMs = 60_000;

export type GatewayOptions = {
  /** host:port each. */
  addresses: readonly string[];
  tlsRequired: boolean;
  certificate: CertificateSource;
  routes: RouteSource;
  /** Directory of the instance host's sockets. */
  runDir: string;
  registry: Registry;
  log: Log;
};

export type PostgresGateway = {
  /** Where it really listens. */
  addresses: string[];
  /** Whether the routes have been read since the start. */
  loaded(): boolean;
  /** New connections are refused at once; sessions have `graceMs`, then they are told and cut. */
  drain(graceMs: number): Promise<void>;
};

/** The only way from a customer to an instance (contract postgres.md §6.2). Errors: no address to listen on; no certificate. */
export async function startPostgresGateway(options: GatewayOptions): Promise<PostgresGateway> {
  const gateway = new Gateway(options, createGatewayMetrics(options.registry));
  return gateway.start();
}

type Entered = { route: Route; stream: Duplex; startup: Startup; address: string; gone: AbortSignal };

class Gateway {
  private readonly servers: Server[] = [];
  private readonly sessions = new Map<string, Set<Session>>();
  private readonly cancelPorts = new Map<string, number>();
  private readonly places = new Map<string, Places>();
  private readonly failures = new FailedLogins();
  private readonly host: HostLink;
  private readonly table: RouteTable;
  private context: SecureContext | undefined;
  private draining = false;

  constructor(private readonly options: GatewayOptions, private readonly metrics: GatewayMetrics) {
    this.host = new HostLink(options.runDir, options.log);
    this.table = new RouteTable(options.routes, (route, serviceId) => this.routeChanged(route, serviceId), options.log);
  }

  async start(): Promise<PostgresGateway> {
    this.context = await readCertificate(this.options.certificate);
    await this.table.start();
    const addresses: string[] = [];
    for (const address of this.options.addresses) {
      const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 }, (socket) => void this.serve(socket));
      addresses.push(...await listen(server, address).then((bound) => {
        this.servers.push(server);
        return [bound];
      }, (error: unknown) => this.withoutIpv6(address, error)));
    }
    const timer = setInterval(() => void this.sweep(), certificateCheckMs).unref();
    return { addresses, loaded: () => this.table.loaded, drain: (graceMs) => this.drain(graceMs).finally(() => clearInterval(timer)) };
  }

  /** A machine without IPv6 has no ::1; everything else that keeps us from listening is an error. */
  private withoutIpv6(address: string, error: unknown): string[] {
    const code = systemCode(error);
    const missing = code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT';
    if (!missing || !address.startsWith('[') || this.options.addresses.length === 1) throw error;
    this.options.log.info({ address }, 'the Postgres gateway does not listen here: the machine has no such address');
    return [];
  }

  private async sweep(): Promise<void> {
    this.failures.sweep();
    for (const [serviceId, places] of this.places) if (places.isEmpty) this.places.delete(serviceId);
    this.context = await readCertificate(this.options.certificate).catch((error: unknown) => {
      this.options.log.error({ err: error }, 'the certificate of the Postgres gateway could not be read; the former one stays');
      return this.context;
    });
  }

  private async serve(socket: Socket): Promise<void> {
    socket.on('error', () => socket.destroy());
    const late = setTimeout(() => socket.destroy(), greetingMs);
    try {
      const greeting = await greet(socket, () => this.secureContext());
      clearTimeout(late);
      greeting.stream.on('error', () => greeting.stream.destroy());
      await this.answer(greeting, plainAddress(socket.remoteAddress ?? ''));
    } catch (error) {
      if (!(error instanceof ProtocolViolation)) this.options.log.debug({ err: error }, 'a connection to the Postgres gateway broke');
      socket.destroy();
    } finally {
      clearTimeout(late);
    }
  }

  private async answer(greeting: Greeting, address: string): Promise<void> {
    const { stream } = greeting;
    if (greeting.kind === 'cancel') return this.cancel(stream, greeting.key);
    const left = new AbortController();
    stream.once('close', () => left.abort());
    try {
      if (this.draining) throw new Refusal('57P01', 'The gateway is being restarted; connect again.');
      if (!greeting.secure && this.options.tlsRequired) throw new Refusal('28000', 'This service is reached with TLS only: use sslmode=verify-full.');
      const route = await this.route(greeting, address);
      await this.admit({ route, stream, startup: greeting.startup, address, gone: left.signal });
    } catch (error) {
      if (left.signal.aborted) return;
      const refusal = error instanceof Refusal ? error : new Refusal('57P03', 'This service could not be reached; try again shortly.');
      if (refusal !== error) this.options.log.warn({ err: error }, 'a Postgres service could not be reached');
      this.metrics.refusals.inc({ sqlstate: refusal.sqlstate });
      stream.end(writeFatal(refusal.sqlstate, refusal.message));
      stream.resume();
    }
  }

  private async route({ startup: { parameters }, serverName }: Greeting & { kind: 'startup' }, address: string): Promise<Route> {
    const name = routeName(serverName, parameters);
    const user = parameters.get('user') ?? '';
    const route = requireOpen(name ? await this.table.find(name) : null, this.table.loaded || name === null, { address, user });
    this.failures.requireFew(route.serviceId, address);
    return route;
  }

  private async admit(entered: Entered): Promise<void> {
    const { route: { serviceId }, route, gone } = entered;
    const places = this.places.get(serviceId) ?? new Places();
    this.places.set(serviceId, places);
    const giveBack = await places.take(sessionsMax(route), gone);
    try {
      const server = await this.connect(entered);
      try {
        this.requireStillOpen(entered);
        await this.run(entered, server);
      } finally {
        server.destroy();
        this.host.leave(serviceId);
      }
    } finally {
      giveBack();
    }
  }

  /** The line and the wake take time, in which the client may have left and the service may have been closed. */
  private requireStillOpen({ route: { serviceId }, startup, address, gone }: Entered): void {
    gone.throwIfAborted();
    if (this.draining) throw new Refusal('57P01', 'The gateway is being restarted; connect again.');
    requireOpen(this.table.known(serviceId), true, { address, user: startup.parameters.get('user') ?? '' });
  }

  /** A server that is awake and has answered; the lease is the caller's to leave. */
  private async connect(entered: Entered): Promise<Socket> {
    const timed = this.metrics.acquireSeconds.startTimer();
    try {
      return await this.untilAnswered(entered, this.host.enter(entered.route.serviceId));
    } catch (error) {
      this.host.leave(entered.route.serviceId);
      throw error;
    } finally {
      timed();
    }
  }

  /** A server that died is replaced within the time of a wake. */
  private async untilAnswered({ route: { serviceId }, startup, gone }: Entered, first: Promise<number>): Promise<Socket> {
    const until = performance.now() + wakeMs;
    for (let port = await first; ; port = await this.host.again(serviceId, port)) {
      try {
        return await openSession(port, startup);
      } catch (error) {
        if (gone.aborted || performance.now() > until) throw error;
        await delay(20);
      }
    }
  }

  private async run({ route: { serviceId }, stream, address }: Entered, server: Socket): Promise<void> {
    let cancelKey: string | undefined;
    const session = new Session(stream, server, (event) => {
      if (event.kind === 'key') {
        cancelKey = event.key;
        this.cancelPorts.set(event.key, server.remotePort ?? 0);
      } else this.loginEnded(event, serviceId, address);
    });
    const known = this.sessions.get(serviceId) ?? new Set();
    this.sessions.set(serviceId, known.add(session));
    this.metrics.sessions.inc();
    await session.ended;
    this.metrics.sessions.dec();
    known.delete(session);
    if (known.size === 0) this.sessions.delete(serviceId);
    if (cancelKey) this.cancelPorts.delete(cancelKey);
  }

  private loginEnded(event: LoginEvent, serviceId: string, address: string): void {
    const failed = event.kind === 'refused' && (event.sqlstate === '28P01' || event.sqlstate === '28000');
    if (failed) this.failures.add(serviceId, address);
    this.metrics.logins.inc({ result: event.kind === 'ready' ? 'accepted' : failed ? 'denied' : 'refused' });
  }

  /** The server checks the secret; we only know which one gave it. The client waits for us to hang up. */
  private async cancel(stream: Duplex, key: string): Promise<void> {
    const port = this.cancelPorts.get(key);
    stream.resume();
    if (port) {
      const server = await connectInstance(port);
      server.resume().end(writeCancel(key));
      await new Promise((resolve) => server.once('close', resolve));
    }
    stream.end();
  }

  private routeChanged(route: Route | null, serviceId: string): void {
    if (route && accessModeOf(route) !== 'blocked') return;
    for (const session of this.sessions.get(serviceId) ?? []) session.cut('57P01', 'Access to this service was closed.');
  }

  private async drain(graceMs: number): Promise<void> {
    this.draining = true;
    const closed = this.servers.map((server) => new Promise((resolve) => server.close(resolve)));
    const open = () => [...this.sessions.values()].flatMap((sessions) => [...sessions]);
    const late = setTimeout(() => open().forEach((session) => session.cut('57P01', 'The gateway is being restarted; connect again.')), graceMs);
    await Promise.all(open().map((session) => session.ended));
    clearTimeout(late);
    this.table.stop();
    this.host.close();
    await Promise.race([Promise.all(closed), new Promise((resolve) => setTimeout(resolve, 500).unref())]);
  }

  private secureContext(): SecureContext {
    if (!this.context) throw new Error('The gateway has no certificate yet.');
    return this.context;
  }
}

/** IPv4 clients of an IPv6 socket look like ::ffff:192.0.2.1. */
function plainAddress(address: string): string {
  const tail = address.slice(address.lastIndexOf(':') + 1);
  return address.startsWith('::ffff:') && isIPv4(tail) ? tail : address;
}

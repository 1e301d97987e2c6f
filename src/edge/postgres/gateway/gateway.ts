import { createServer, isIPv4, type Server, type Socket } from 'node:net';
import type { Registry } from 'prom-client';
import { systemCode } from '../../../core/files';
import { listen } from '../../../core/listen';
import type { Log } from '../../../core/log';
import type { Route } from '../../../postgres/store/routes';
import { requireOpen, routeName } from './admission';
import { ServedCertificate, type CertificateSource } from './certificate';
import { greet, ProtocolViolation, type Greeting } from './handshake';
import { HostLink } from './host-link';
import { createGatewayMetrics, type GatewayMetrics } from './metrics';
import { Reception } from './reception';
import { Refusal, restarting } from './refusal';
import { RouteTable, type RouteSource } from './route-table';
import { hangUp } from './session';
import { writeFatal } from './wire';

const greetingMs = 10_000;
const sweepMs = 60_000;

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

class Gateway {
  private readonly servers: Server[] = [];
  private readonly host: HostLink;
  private readonly table: RouteTable;
  private readonly reception: Reception;
  private certificate: ServedCertificate | undefined;
  private draining = false;

  constructor(private readonly options: GatewayOptions, private readonly metrics: GatewayMetrics) {
    this.host = new HostLink(options.runDir, options.log);
    this.table = new RouteTable(options.routes, (route, serviceId) => this.reception.routeChanged(route, serviceId), options.log);
    this.reception = new Reception({ host: this.host, known: (serviceId) => this.table.known(serviceId), metrics });
  }

  async start(): Promise<PostgresGateway> {
    const { certificate, log } = this.options;
    this.certificate = await ServedCertificate.open(certificate, log);
    await this.table.start();
    const addresses: string[] = [];
    for (const address of this.options.addresses) {
      const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 }, (socket) => void this.serve(socket));
      addresses.push(...await listen(server, address).then((bound) => {
        this.servers.push(server);
        return [bound];
      }, (error: unknown) => this.withoutIpv6(address, error)));
    }
    const timer = setInterval(() => this.reception.sweep(), sweepMs).unref();
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
    if (greeting.kind === 'cancel') return this.reception.cancel(stream, greeting.key);
    const left = new AbortController();
    stream.once('close', () => left.abort());
    try {
      if (this.draining) throw restarting();
      if (!greeting.secure && this.options.tlsRequired) throw new Refusal('28000', 'This service is reached with TLS only: use sslmode=verify-full.');
      const route = await this.route(greeting, address);
      await this.reception.admit(route, { stream, startup: greeting.startup, address, gone: left.signal });
    } catch (error) {
      if (left.signal.aborted) return;
      const refusal = error instanceof Refusal ? error : new Refusal('57P03', 'This service could not be reached; try again shortly.');
      if (refusal !== error) this.options.log.warn({ err: error }, 'a Postgres service could not be reached');
      this.metrics.refusals.inc({ sqlstate: refusal.sqlstate });
      hangUp(stream, writeFatal(refusal.sqlstate, refusal.message));
      stream.resume();
    }
  }

  private async route({ startup: { parameters }, serverName }: Greeting & { kind: 'startup' }, address: string): Promise<Route> {
    const name = routeName(serverName, parameters);
    const user = parameters.get('user') ?? '';
    return requireOpen(name ? await this.table.find(name) : null, this.table.loaded || name === null, { address, user });
  }

  private async drain(graceMs: number): Promise<void> {
    this.draining = true;
    const closed = this.servers.map((server) => new Promise((resolve) => server.close(resolve)));
    await this.reception.drain(graceMs);
    this.table.stop();
    this.host.close();
    this.certificate?.stop();
    await Promise.race([Promise.all(closed), new Promise((resolve) => setTimeout(resolve, 500).unref())]);
  }

  private secureContext() {
    if (!this.certificate) throw new Error('The gateway has no certificate yet.');
    return this.certificate.context;
  }
}

/** IPv4 clients of an IPv6 socket look like ::ffff:192.0.2.1. */
function plainAddress(address: string): string {
  const tail = address.slice(address.lastIndexOf(':') + 1);
  return address.startsWith('::ffff:') && isIPv4(tail) ? tail : address;
}

import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { accessModeOf } from '../../../postgres/state';
import type { Route } from '../../../postgres/store/routes';
import { closedBecause, requireOpen, sessionsMax } from './admission';
import { FailedLogins } from './failed-logins';
import type { HostLink } from './host-link';
import type { GatewayMetrics } from './metrics';
import { Places } from './places';
import { Refusal, restarting } from './refusal';
import { connectInstance, openSession, Session } from './session';
import { writeCancel, type LoginEvent, type Startup } from './wire';

const wakeMs = 15_000;

/** A client that has named its service. `gone` is aborted when it leaves. */
export type Guest = { stream: Duplex; startup: Startup; address: string; gone: AbortSignal };

export type ReceptionParts = {
  host: HostLink;
  /** What is known of a service now, without asking. */
  known: (serviceId: string) => Route | null;
  metrics: GatewayMetrics;
};

/** The sessions of every service: who may begin one, who waits, and what ends them. */
export class Reception {
  private readonly sessions = new Map<string, Set<Session>>();
  private readonly cancelPorts = new Map<string, number>();
  private readonly places = new Map<string, Places>();
  private readonly failures = new FailedLogins();
  private draining = false;

  constructor(private readonly parts: ReceptionParts) {}

  /** One session from its place to its end. Errors: Refusal; others when the service could not be reached. */
  async admit({ serviceId }: Route, guest: Guest): Promise<void> {
    this.failures.requireFew(serviceId, guest.address);
    const giveBack = await this.placesOf(serviceId).take(guest.gone);
    try {
      this.requireStillOpen(serviceId, guest);
      const decided = await this.failures.begin(serviceId, guest.address, guest.gone);
      await this.serve(serviceId, guest, decided).finally(() => decided(false));
    } finally {
      giveBack();
    }
  }

  /** Who is in is cut when the service is closed; who waits hears why, or is served by a larger plan. */
  routeChanged(route: Route | null, serviceId: string): void {
    const places = this.places.get(serviceId);
    const closed = closedBecause(route);
    if (closed) places?.dismiss(closed);
    else places?.serve();
    if (route && accessModeOf(route) !== 'blocked') return;
    for (const session of this.sessions.get(serviceId) ?? []) session.cut('57P01', 'Access to this service was closed.');
  }

  /** The server checks the secret; we only know which one gave it. The client waits for us to hang up. */
  async cancel(stream: Duplex, key: string): Promise<void> {
    const port = this.cancelPorts.get(key);
    stream.resume();
    if (port) {
      const server = await connectInstance(port);
      server.resume().end(writeCancel(key));
      await new Promise((resolve) => server.once('close', resolve));
    }
    stream.end();
  }

  /** Nobody new; sessions may end by themselves for `graceMs`, then they are told and cut. */
  async drain(graceMs: number): Promise<void> {
    this.draining = true;
    for (const places of this.places.values()) places.dismiss(restarting());
    const open = () => [...this.sessions.values()].flatMap((sessions) => [...sessions]);
    const late = setTimeout(() => open().forEach((session) => session.cut(restarting().sqlstate, restarting().message)), graceMs);
    await Promise.all(open().map((session) => session.ended));
    clearTimeout(late);
  }

  /** Forgets what nobody uses. */
  sweep(): void {
    this.failures.sweep();
    for (const [serviceId, places] of this.places) if (places.isEmpty) this.places.delete(serviceId);
  }

  private placesOf(serviceId: string): Places {
    const places = this.places.get(serviceId) ?? new Places(() => {
      const route = this.parts.known(serviceId);
      return route ? sessionsMax(route) : 0;
    });
    this.places.set(serviceId, places);
    return places;
  }

  private async serve(serviceId: string, guest: Guest, decided: (failed: boolean) => void): Promise<void> {
    const { host } = this.parts;
    try {
      const server = await this.connect(serviceId, guest);
      try {
        this.requireStillOpen(serviceId, guest);
        await this.run(serviceId, { stream: guest.stream, server }, decided);
      } finally {
        server.destroy();
      }
    } finally {
      host.leave(serviceId);
    }
  }

  /** The line and the wake take time, in which the client may have left and the service may have been closed. */
  private requireStillOpen(serviceId: string, { startup, address, gone }: Guest): void {
    gone.throwIfAborted();
    if (this.draining) throw restarting();
    requireOpen(this.parts.known(serviceId), true, { address, user: startup.parameters.get('user') ?? '' });
  }

  /** A server that is awake and has answered; the lease is the caller's to leave. Errors: Refusal 57P03 after 15 s. */
  private async connect(serviceId: string, guest: Guest): Promise<Socket> {
    const timed = this.parts.metrics.acquireSeconds.startTimer();
    const port = this.parts.host.enter(serviceId);
    const late = new AbortController();
    const answered = this.untilAnswered(serviceId, port, { ...guest, gone: AbortSignal.any([guest.gone, late.signal]) });
    const timer = setTimeout(() => late.abort(), wakeMs);
    try {
      return await Promise.race([answered, new Promise<never>((_, fail) => late.signal.addEventListener('abort', () => fail(new Refusal('57P03', 'This service could not be woken; try again shortly.'))))]);
    } catch (error) {
      void answered.then((server) => server.destroy(), () => undefined);
      throw error;
    } finally {
      clearTimeout(timer);
      timed();
    }
  }

  /** A server that died is replaced within the time of a wake. */
  private async untilAnswered(serviceId: string, first: Promise<number>, { startup, gone }: Guest): Promise<Socket> {
    for (let port = await first; ; port = await this.parts.host.again(serviceId, port)) {
      try {
        return await openSession(port, startup);
      } catch (error) {
        if (gone.aborted) throw error;
        await delay(20);
      }
    }
  }

  private async run(serviceId: string, { stream, server }: { stream: Duplex; server: Socket }, decided: (failed: boolean) => void): Promise<void> {
    let cancelKey: string | undefined;
    const session = new Session(stream, server, (event) => {
      if (event.kind === 'key') {
        cancelKey = event.key;
        this.cancelPorts.set(event.key, server.remotePort ?? 0);
      } else decided(this.loginFailed(event));
    });
    const known = this.sessions.get(serviceId) ?? new Set();
    this.sessions.set(serviceId, known.add(session));
    this.parts.metrics.sessions.inc();
    await session.ended;
    this.parts.metrics.sessions.dec();
    known.delete(session);
    if (known.size === 0) this.sessions.delete(serviceId);
    if (cancelKey) this.cancelPorts.delete(cancelKey);
  }

  private loginFailed(event: LoginEvent): boolean {
    const failed = event.kind === 'refused' && (event.sqlstate === '28P01' || event.sqlstate === '28000');
    this.parts.metrics.logins.inc({ result: event.kind === 'ready' ? 'accepted' : failed ? 'denied' : 'refused' });
    return failed;
  }
}

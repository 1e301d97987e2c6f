import { setTimeout as delay } from 'node:timers/promises';
import { Semaphore } from '../../../core/keyed-queue';
import type { Log } from '../../../core/log';
import type { Route } from '../../../postgres/store/routes';

/** Where routes come from. Errors of `load` and `find` mean that the database is away. */
export interface RouteSource {
  load(): Promise<Route[]>;
  /** By service id or key. */
  find(name: string): Promise<Route | null>;
  /** Tells of a changed service id, or of null when some may have been missed. Returns how to stop. */
  listen(changed: (serviceId: string | null) => void): () => void;
}

const compareMs = 30_000;
const lookUpEveryMs = 200;
const lookUpsAtOnce = 16;

/**
 * All routes in memory, so that connections are let in while the database is away. It hears of changes, compares itself
 * with the database every 30 s, and asks for a name it does not know or that is not open, so a new service is never
 * refused because it is newer than the table.
 */
export class RouteTable {
  private readonly byName = new Map<string, Route>();
  private readonly askedAt = new Map<string, number>();
  private readonly planned = new Map<string, Promise<void>>();
  private readonly lookUps = new Semaphore(lookUpsAtOnce);
  private readonly pending = new Map<string, Promise<void>>();
  /** What was asked for while a compare is under way is newer than what the compare will bring. */
  private readonly learned = new Set<string>();
  private readonly ends: (() => void)[] = [];
  private comparing: Promise<void> = Promise.resolve();
  /** False until the table was read once: an unknown name may then be one we have not heard of. */
  loaded = false;

  constructor(private readonly source: RouteSource, private readonly changed: (route: Route | null, serviceId: string) => void, private readonly log: Log) {}

  /** Ends after the first attempt to load; a failed one is repeated with the next compare. */
  async start(): Promise<void> {
    const timers = [setInterval(() => void this.compare(), compareMs).unref(), setInterval(() => this.forgetAsked(), 1_000).unref()];
    this.ends.push(...timers.map((timer) => () => clearInterval(timer)));
    this.ends.push(this.source.listen((serviceId) => void (serviceId ? this.hear(serviceId) : this.compare())));
    await this.compare();
  }

  stop(): void {
    for (const end of this.ends) end();
  }

  /** By service id or key. An open route is answered from memory; any other is asked for after this call, so nothing stale refuses. */
  async find(name: string): Promise<Route | null> {
    const running = this.pending.get(name);
    if (running && !this.byName.get(name)?.accessOpen) await running;
    const known = this.byName.get(name);
    if (known?.accessOpen) return known;
    await this.nextLookUp(name);
    return this.byName.get(name) ?? null;
  }

  /** One that begins after this call; five a second per name, so whoever asks more often waits for the next. */
  private nextLookUp(name: string): Promise<void> {
    const planned = this.planned.get(name);
    if (planned) return planned;
    const next = this.whenAllowed(name).then(() => this.lookUps.run(async () => {
      await this.pending.get(name);
      this.planned.delete(name);
      this.askedAt.set(name, performance.now());
      await this.lookUp(name);
    }));
    this.planned.set(name, next);
    return next;
  }

  private async whenAllowed(name: string): Promise<void> {
    const waitMs = (this.askedAt.get(name) ?? -Infinity) + lookUpEveryMs - performance.now();
    if (waitMs > 0) await delay(waitMs);
  }

  private forgetAsked(): void {
    for (const [name, at] of this.askedAt) if (performance.now() - at > lookUpEveryMs) this.askedAt.delete(name);
  }

  /** A question that is under way may have been answered before the change: it is asked again. */
  private async hear(serviceId: string): Promise<void> {
    await this.pending.get(serviceId);
    await this.lookUp(serviceId);
  }

  /** What is known now, without asking. */
  known(serviceId: string): Route | null {
    return this.byName.get(serviceId) ?? null;
  }

  /** One question at a time per name: whoever asks meanwhile gets its answer. */
  private lookUp(name: string): Promise<void> {
    const running = this.pending.get(name);
    if (running) return running;
    const lookUp = this.source.find(name)
      .then((route) => this.learn(name, route), (error: unknown) => this.log.warn({ err: error }, 'a Postgres route could not be looked up'))
      .finally(() => this.pending.delete(name));
    this.pending.set(name, lookUp);
    return lookUp;
  }

  private compare(): Promise<void> {
    this.comparing = this.comparing.then(async () => {
      this.learned.clear();
      const routes = await this.source.load();
      const living = new Set(routes.map((route) => route.serviceId));
      for (const route of routes) if (!this.learned.has(route.serviceId)) this.put(route.serviceId, route);
      for (const { serviceId } of new Set(this.byName.values())) if (!living.has(serviceId)) await this.lookUp(serviceId);
      this.loaded = true;
    }).catch((error: unknown) => this.log.warn({ err: error }, 'the Postgres routes could not be compared; the known ones stay'));
    return this.comparing;
  }

  private learn(name: string, route: Route | null): void {
    if (route) this.learned.add(route.serviceId);
    this.put(name, route);
  }

  private put(name: string, route: Route | null): void {
    const former = this.byName.get(name);
    if (route) {
      this.byName.set(route.serviceId, route);
      this.byName.set(route.key, route);
    } else if (former) {
      this.byName.delete(former.serviceId);
      this.byName.delete(former.key);
    }
    const serviceId = route?.serviceId ?? former?.serviceId;
    if (serviceId) this.changed(route, serviceId);
  }
}

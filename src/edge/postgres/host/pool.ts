import pg from 'pg';
import type { Log } from '../../../core/log';
import { newPassword, planLimits, plans, scramVerifier, type Plan } from '../../../postgres/rules';
import type { Instance } from './instance';
import type { InstanceSet } from './instance-set';
import { ensureAccess, poolNames, rehearseClaim } from './roles';

export type PoolSizes = { prepared: number; running: Readonly<Partial<Record<Plan, number>>> };

const tickMs = 250;
const proofMs = 20 * 3_600_000;

/**
 * Instances nobody owns yet, so that creation is fast: initialised directories for any plan, and running servers of a plan
 * whose login has been proven. Filled one step at a time, and never while somebody waits for an instance of his own.
 */
export class Pool {
  private readonly prepared = new Set<Instance>();
  private readonly running = new Map<Plan, Set<Instance>>(plans.map((plan) => [plan, new Set()]));
  private timer: NodeJS.Timeout | undefined;
  private filling: Promise<void> = Promise.resolve();
  private restUntil = 0;
  private failures = 0;

  constructor(private readonly set: InstanceSet, private readonly sizes: PoolSizes, private readonly mayFill: () => Promise<boolean>, private readonly log: Log) {
    for (const instance of set.all()) if (instance.record.serviceId === null) this.adopt(instance);
  }

  start(): void {
    const tick = () => {
      this.filling = this.fill().finally(() => {
        if (this.timer) this.timer = setTimeout(tick, tickMs).unref();
      });
    };
    this.timer = setTimeout(tick, 0);
  }

  async stop(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    await this.filling;
    for (const members of this.running.values()) await Promise.all([...members].map((member) => member.closeAhead()));
  }

  /** The best there is for a plan: running, else initialised, else null. It is the caller's alone from this moment. */
  claim(plan: Plan): Instance | null {
    const ready = [...this.running.get(plan) ?? []].find((instance) => instance.pid !== null);
    const instance = ready ?? [...this.prepared].find((member) => member.pid === null) ?? null;
    if (instance) this.forget(instance);
    return instance;
  }

  /** Ready members: what a benchmark and the metrics want to know. */
  counts(): { prepared: number; running: Record<string, number> } {
    return { prepared: this.prepared.size, running: Object.fromEntries([...this.running].map(([plan, members]) => [plan, members.size])) };
  }

  private adopt(instance: Instance): void {
    const { plan, provenAt } = instance.record;
    const members = plan && provenAt && instance.pid !== null ? this.running.get(plan) : undefined;
    (members ?? this.prepared).add(instance);
  }

  private forget(instance: Instance): void {
    this.prepared.delete(instance);
    for (const members of this.running.values()) members.delete(instance);
  }

  private async fill(): Promise<void> {
    if (performance.now() < this.restUntil) return;
    try {
      while (this.timer && await this.mayFill() && await this.step());
      this.failures = 0;
    } catch (error) {
      this.failures += 1;
      this.restUntil = performance.now() + Math.min(60_000, 1_000 * 2 ** this.failures);
      this.log.warn({ err: error }, 'the pool of Postgres instances could not be filled');
    }
  }

  /** One member more, or one that fell back on its feet; false when nothing is missing. */
  private async step(): Promise<boolean> {
    for (const [plan, members] of this.running) {
      for (const member of members) if (member.pid === null) this.putBack(member);
      if (members.size < (this.sizes.running[plan] ?? 0)) {
        members.add(await this.makeRunning(plan));
        return true;
      }
    }
    if (this.prepared.size >= this.sizes.prepared) return false;
    this.prepared.add(await this.makePrepared());
    return true;
  }

  private putBack(member: Instance): void {
    this.forget(member);
    this.prepared.add(member);
  }

  private makePrepared(): Promise<Instance> {
    return this.orDiscarded(this.set.create(null), (instance) => instance.initialise(true));
  }

  private makeRunning(plan: Plan): Promise<Instance> {
    const idle = [...this.prepared].find((instance) => instance.record.plan === plan) ?? [...this.prepared].find((instance) => instance.record.plan === null);
    if (idle) this.forget(idle);
    return this.orDiscarded(idle ? Promise.resolve(idle) : this.set.create(plan), async (instance) => {
      await instance.initialise(true);
      await instance.save({ plan });
      await instance.start(planLimits[plan]);
      const { provenAt } = instance.record;
      if (provenAt === null || Date.now() - Date.parse(provenAt) > proofMs) await proveLogin(instance, planLimits[plan].connections);
      await instance.openAhead(rehearseClaim);
    });
  }

  private async orDiscarded(made: Promise<Instance>, work: (instance: Instance) => Promise<void>): Promise<Instance> {
    const instance = await made;
    try {
      await work(instance);
      return instance;
    } catch (error) {
      await this.set.discard(instance);
      throw error;
    }
  }
}

/** Roles, database and a login as a customer's, under a password that is forgotten at once. */
async function proveLogin(instance: Instance, connectionLimit: number): Promise<void> {
  const [name] = poolNames.logins;
  const password = newPassword();
  const login = { name, verifier: scramVerifier(password), connectionLimit, validUntil: null, enabled: true };
  await ensureAccess(instance, poolNames, [login], []);
  const client = new pg.Client({ host: '127.0.0.1', port: instance.port, user: name, password, database: poolNames.database, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query('create table proof (n int); insert into proof values (1)');
    const { rows } = await client.query('select n from proof');
    if (rows.length !== 1) throw new Error('A new instance did not keep the row it was given.');
    await client.query('drop table proof');
  } finally {
    await client.end();
  }
  await ensureAccess(instance, poolNames, [{ ...login, enabled: false }], []);
  await instance.save({ provenAt: new Date().toISOString() });
  await instance.measure();
}

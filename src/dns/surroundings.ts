import type { Tx } from '../db/transaction';
import { hopsMax } from './rules/cname-chains';
import { fqdnOf, namesAbove, relativeName } from './rules/names';
import type { Plan } from './rules/plan';
import { RecordIndex } from './rules/record-index';
import type { RecordRow } from './store/records';
import { cnamesTo, recordsAt, recordsBelow, witnessesBelow } from './store/surroundings';

type Zone = { id: string; domain: string };

/**
 * The state after a planned write as far as a rule or warning can see from the written records: delegations above them, what
 * stands below a new delegation, the CNAMEs that lead from and to them. In a large zone that is a handful of rows.
 */
export async function readSurroundings(tx: Tx, zone: Zone, plan: Plan<RecordRow>): Promise<RecordIndex> {
  const written = [...plan.created, ...plan.updated, ...plan.affected];
  const around = new Surroundings(tx, zone, plan);
  await around.readAt(written.flatMap(({ name }) => namesAbove(name)));
  for (const cut of new Set(written.filter(({ type }) => type === 'NS').map(({ name }) => name))) await around.readBelow(cut);
  await around.follow(written);
  await around.trace(written.filter(({ type }) => type === 'CNAME'));
  return around.index();
}

class Surroundings {
  private readonly found = new Map<string, RecordRow>();

  constructor(private readonly tx: Tx, private readonly zone: Zone, private readonly plan: Plan<RecordRow>) {}

  index(): RecordIndex {
    return new RecordIndex(this.zone.domain, [...this.plan.after, ...this.found.values()]);
  }

  async readAt(names: readonly string[]): Promise<void> {
    if (names.length > 0) this.add(await recordsAt(this.tx, this.zone.id, [...new Set(names)]));
  }

  async readBelow(name: string): Promise<void> {
    this.add(await recordsBelow(this.tx, this.zone.id, name));
  }

  /** Where the records lead inside the zone, step by step. */
  async follow(from: readonly RecordRow[]): Promise<void> {
    let records: readonly RecordRow[] = from;
    const asked = new Set<string>();
    for (let hops = 0; hops <= hopsMax && records.length > 0; hops++) {
      const targets = [...new Set(records.flatMap((record) => this.targetOf(record)))].filter((name) => !asked.has(name));
      for (const name of targets) asked.add(name);
      await this.look(targets);
      const index = this.index();
      const answering = new Set(targets.flatMap((name) => index.answering(name)).map(({ id }) => id));
      records = [...this.plan.after, ...this.found.values()].filter(({ id, type }) => type === 'CNAME' && answering.has(id));
    }
  }

  /** Which CNAME records lead to these, step by step. */
  async trace(to: readonly RecordRow[]): Promise<void> {
    const touched = new Set([...this.plan.deleted, ...this.plan.created, ...this.plan.updated, ...this.plan.affected].map(({ id }) => id));
    let level: readonly RecordRow[] = to;
    for (let hops = 0; hops < hopsMax && level.length > 0; hops++) {
      const hosts = level.map(({ name }) => fqdnOf(name, this.zone.domain));
      const above = hosts.filter((host) => host.startsWith('*.')).map((host) => host.slice(2));
      const sources = (await cnamesTo(this.tx, this.zone.id, hosts, above)).filter(({ id }) => !touched.has(id));
      for (const { id } of sources) touched.add(id);
      this.add(sources);
      if (above.length > 0) await this.look(sources.flatMap((record) => this.targetOf(record)));
      level = sources;
    }
  }

  /** All that decides which records answer for these names. */
  private async look(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const enclosers = [...new Set(names.flatMap((name) => [name, ...namesAbove(name)]))].filter((name) => name !== '@');
    await this.readAt([...names, ...enclosers, '*', ...enclosers.map((name) => `*.${name}`)]);
    this.add(await witnessesBelow(this.tx, this.zone.id, enclosers, [...this.plan.before.keys()]));
  }

  private targetOf({ type, value }: RecordRow): string[] {
    const target = type === 'CNAME' || type === 'MX' || type === 'NS' ? relativeName(value, this.zone.domain) : null;
    return target === null ? [] : [target];
  }

  /** What the plan has decided about a record stands, whatever the database still says. */
  private add(records: readonly RecordRow[]): void {
    for (const record of records) if (!this.plan.before.has(record.id)) this.found.set(record.id, record);
  }
}

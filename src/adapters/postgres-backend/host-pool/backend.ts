import { AppError } from '../../../core/errors';
import type { InventoryItem, Login, Observation, PostgresBackend, Ref, Source } from '../../../postgres/ports';
import type { AccessMode } from '../../../postgres/rules';
import { readMetrics, readVerifiers, sizeOf } from './observe';
import { asAdmin, prepareServer, type PoolServer } from './server';
import {
  createDatabase, createRoles, dropEverything, dropPassword, endSessions, findDatabase, findRoles, grantDatabase, limitDatabase, limitLogin, openToRestricted, ownPublicSchema,
  rename, retainedName, setLogin, setMode,
} from './statements';
import { inTurn, readHeld, type Held, type Turn } from './turn';

export type HostPoolOptions = {
  /** A registered server by its name, also one that takes no new services. Null: never heard of. */
  find: (hostId: string) => Promise<PoolServer | null>;
};

/**
 * One database per service on registered servers, reached by customers directly (contract postgres.md §6.3). Every call works in turn per service, over
 * all workers, behind the server's own fence.
 */
export class HostPoolBackend implements PostgresBackend {
  readonly name = 'host_pool';
  readonly can = { idleStop: false, pointInTime: false, createDatabases: false, gateway: false };
  private readonly prepared = new Set<string>();

  constructor(private readonly options: HostPoolOptions) {}

  async place(r: Ref): Promise<{ instanceRef: string }> {
    return this.turn(r, (turn, server) => reserve(turn, server, r));
  }

  async ensureInstance(r: Ref): Promise<{ host: string; port: number; systemId: string | null }> {
    return this.turn(r, async (turn, server) => {
      await reserve(turn, server, r);
      await makeDatabase(turn, server, r);
      await turn.save({ state: 'made', stopped: false });
      return { host: server.publicHost, port: server.publicPort, systemId: null };
    });
  }

  async ensureAccess(r: Ref & { logins: Login[]; endSessionsOf: string[] }): Promise<{ provenAt: string | null }> {
    return this.turn(r, async (turn) => {
      requireMade(turn.held);
      const { client } = turn;
      const found = await findRoles(client, r.names);
      const unwanted = r.names.logins.filter((login) => found.has(login) && !r.logins.some((wanted) => wanted.name === login));
      const enabled = r.logins.filter((login) => login.enabled).map((login) => login.name);
      const mode = turn.held.mode === 'blocked' ? 'full' : turn.held.mode;
      await inOneTransaction(turn, [
        ...r.logins.flatMap((login) => setLogin(r.names, login, found, r.limits)), ...unwanted.map(dropPassword), ...setMode(r.names, mode, enabled, r.limits),
      ]);
      await turn.save({ mode, stopped: false, logins: enabled });
      if (r.endSessionsOf.length > 0) await endSessions(client, null, r.endSessionsOf);
      return { provenAt: null };
    });
  }

  async setLimits(r: Ref): Promise<{ restarted: boolean }> {
    return this.turn(r, async (turn, server) => {
      requireMade(turn.held);
      await requireRoom(turn, server, r);
      const found = await findRoles(turn.client, r.names);
      await inOneTransaction(turn, [
        ...limitDatabase(r.names, r.limits), ...r.names.logins.filter((login) => found.has(login)).flatMap((login) => limitLogin(r.names, login, r.limits)),
        ...setMode(r.names, turn.held.mode, turn.held.logins, r.limits),
      ]);
      await turn.save({ bytes: r.limits.storageBytes });
      return { restarted: false };
    });
  }

  async setAccessMode(r: Ref & { mode: AccessMode; stop: boolean }): Promise<void> {
    await this.turn(r, async (turn, server) => {
      if (r.mode === 'blocked' && turn.held.state !== 'made') return;
      requireMade(turn.held);
      await enforce(turn, server, r);
      await turn.save({ mode: r.mode, stopped: r.stop || (turn.held.stopped && r.mode === 'blocked') });
    });
  }

  async observe(r: Ref): Promise<Observation> {
    const server = await this.serverOf(r.hostId);
    return asAdmin(server, async (client) => {
      const held = await readHeld(client, r.serviceId);
      requireMade(held);
      const open = !held.stopped;
      return {
        usedBytes: await sizeOf(client, r.names.database), compute: open ? 'running' : 'stopped', mode: held.mode, verifiers: open ? await readVerifiers(client, r.names) : {},
        metrics: open ? await readMetrics(client, r.names, r.limits) : null, newestArchivedWal: null, systemId: null, provenAt: null,
      };
    });
  }

  async snapshot(): Promise<never> {
    throw new AppError('backend_error', 'This backend keeps no backups.');
  }

  async drill(): Promise<never> {
    throw new AppError('restore_unavailable', 'This backend keeps no backups.');
  }

  async restore(r: Ref & { source: Source }): Promise<{ reachedTime: string | null }> {
    if (r.source.kind === 'backup') throw new AppError('restore_unavailable', 'This backend keeps no backups.');
    return this.turn(r, async (turn) => {
      const { client, held } = turn;
      if (await findDatabase(client, retainedName(r.names))) await rename(client, retainedName(r.names), r.names.database);
      else if (held.state === 'absent' || !(await findDatabase(client, r.names.database))) throw new AppError('restore_unavailable', 'Nothing of this service is kept here.');
      const found = await findRoles(client, r.names);
      await inOneTransaction(turn, r.names.logins.filter((login) => found.has(login)).map(dropPassword));
      await turn.save({ state: 'made', mode: 'blocked', stopped: true, logins: [] });
      return { reachedTime: null };
    });
  }

  async destroy(r: Ref & { retain: boolean }): Promise<void> {
    await this.turn(r, async (turn) => {
      if (r.retain && (turn.held.state === 'made' || turn.held.state === 'retained')) return retain(turn, r);
      await dropEverything(turn.client, r.names);
      await turn.save({ state: 'absent', bytes: null, mode: 'full', stopped: false, logins: [] });
    });
  }

  async dropBackup(): Promise<void> {
    // There are no backups: absent is success.
  }

  async inventory(hostId: string): Promise<InventoryItem[]> {
    const server = await this.serverOf(hostId);
    return asAdmin(server, async (client) => {
      const { rows } = await client.query<{ id: string; retained: boolean }>(`select id, state = 'retained' as retained from public.service where state <> 'absent' order by id`);
      return rows.map(({ id, retained }) => ({ instanceRef: id, serviceId: id, retained }));
    });
  }

  private async turn<T>(r: Ref, work: (turn: Turn, server: PoolServer) => Promise<T>): Promise<T> {
    const server = await this.serverOf(r.hostId);
    return inTurn(server, r, (turn) => work(turn, server));
  }

  private async serverOf(hostId: string): Promise<PoolServer> {
    const server = await this.options.find(hostId);
    if (!server) throw new AppError('backend_error', 'The server of this service is not registered.');
    if (!this.prepared.has(hostId)) await prepareServer(server);
    this.prepared.add(hostId);
    return server;
  }
}

async function reserve(turn: Turn, server: PoolServer, r: Ref): Promise<{ instanceRef: string }> {
  if (turn.held.state === 'absent') {
    await requireRoom(turn, server, r);
    await turn.save({ state: 'placed', bytes: r.limits.storageBytes });
  }
  return { instanceRef: r.serviceId };
}

/** What others were promised, retained data included, leaves room for this. Two at once are counted one after the other. */
async function requireRoom({ client }: Turn, { capacityBytes, maxServices }: PoolServer, r: Ref): Promise<void> {
  await client.query('select pg_advisory_lock(1)');
  const { rows: [others] } = await client.query<{ bytes: number; services: number }>(
    'select coalesce(sum(bytes), 0)::float8 as bytes, count(*)::int as services from public.service where bytes is not null and id <> $1', [r.serviceId]);
  if (others && others.bytes + r.limits.storageBytes <= capacityBytes && others.services < maxServices) return;
  throw new AppError('no_capacity', 'This host has no room for another service of this size.');
}

async function makeDatabase(turn: Turn, server: PoolServer, { names, limits }: Ref): Promise<void> {
  const { client, held } = turn;
  const found = await findDatabase(client, names.database);
  if (found?.valid && held.state === 'made') return;
  if (found) await dropEverything(client, names); // a half-made one of a run that was killed; nobody has been let in
  await inOneTransaction(turn, createRoles(names, await findRoles(client, names)));
  await turn.requireFence();
  await client.query(createDatabase(names, limits));
  await inOneTransaction(turn, [...grantDatabase(names), ...limitDatabase(names, limits)]);
  await asAdmin(server, (inside) => inside.query(ownPublicSchema(names)), names.database);
  await turn.requireFence();
}

/** Sessions end with every change but the return to full: a setting holds from the next login on, and a right already used would stay. */
async function enforce(turn: Turn, server: PoolServer, { names, limits, mode }: Ref & { mode: AccessMode }): Promise<void> {
  const { client, held } = turn;
  if (mode === 'restricted') {
    await inOneTransaction(turn, [...setMode(names, 'blocked', held.logins, limits), ...setMode(names, 'full', [], limits)]);
    await endSessions(client, names.database, names.logins);
    await asAdmin(server, (inside) => openToRestricted(inside, names), names.database);
  }
  await inOneTransaction(turn, setMode(names, mode, held.logins, limits));
  if (mode !== held.mode && mode !== 'full') await endSessions(client, names.database, names.logins);
}

async function retain(turn: Turn, { names, limits }: Ref): Promise<void> {
  const { client, held } = turn;
  if (await findDatabase(client, names.database)) {
    await inOneTransaction(turn, setMode(names, 'blocked', held.logins, limits));
    await rename(client, names.database, retainedName(names));
  }
  await turn.save({ state: 'retained', mode: 'blocked' });
}

function requireMade({ state }: Held): void {
  if (state !== 'made') throw new AppError('backend_error', 'This host has no database of the service.');
}

async function inOneTransaction({ client }: Turn, statements: readonly string[]): Promise<void> {
  if (statements.length === 0) return;
  await client.query('begin');
  try {
    await client.query(statements.join(';\n'));
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

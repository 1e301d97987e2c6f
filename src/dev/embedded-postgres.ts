import { execFile } from 'node:child_process';
import { chown, mkdir, readFile, readlink, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { ensurePostgresBinaries, type PostgresBinaries } from '../db/postgres-binaries';
import { startLeashed, type LeashedServer } from './leash';
import { identifyProcess, signal } from './process-identity';

const run = promisify(execFile);
const superuser = 'holdfast';

export interface EmbeddedPostgresOptions {
  readonly nativeDir: string;
  /** Made when absent. Its parent must exist and be open to the server's user. */
  readonly dataDir: string;
  readonly port: number;
  readonly password: string;
  readonly logFile: string;
  /** As root: the user that initdb and the server run as; default the first of holdfast, postgres, nobody. */
  readonly user?: string | undefined;
  readonly settings?: Readonly<Record<string, string>>;
  readonly removeAfterwards?: string;
  readonly say?: (text: string) => void;
  /** Called when there is a process, before it answers. */
  readonly onSpawn?: (server: LeashedServer) => void;
}

export interface EmbeddedPostgres extends LeashedServer {
  readonly url: string;
}

/**
 * A PostgreSQL of our own on 127.0.0.1 that answers queries. A first start makes the data directory under another name and
 * renames it when it is whole; a start after a power cut takes away the stale postmaster.pid, ends an orphan that still runs
 * in the directory and puts an incomplete directory aside.
 * Errors: the programs are missing, the directory belongs to another major version, the server ends while starting.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const binaries = await ensurePostgresBinaries(options.nativeDir);
  const user = await serverUser(options.user);
  await setAsideIncomplete(options);
  if (!(await exists(options.dataDir))) await initialise(binaries, options, user);
  await requireVersion(binaries, options.dataDir);
  await endOrphan(options.dataDir);
  const server = await startLeashed({
    command: binaries.postgres,
    args: ['-D', options.dataDir, ...settingsOf(options)],
    stopSignal: 'INT',
    logFile: options.logFile,
    user,
    ...(options.removeAfterwards ? { removeAfterwards: options.removeAfterwards } : {}),
  });
  options.onSpawn?.(server);
  const urlOf = (database: string) => `postgresql://${superuser}:${encodeURIComponent(options.password)}@127.0.0.1:${options.port}/${database}`;
  await untilAnswering(server, urlOf('postgres'), options);
  return Object.assign(server, { url: urlOf(superuser) });
}

/** Whom initdb and the server run as: undefined means "as ourselves". PostgreSQL refuses root. */
export async function serverUser(wanted?: string): Promise<{ uid: number; gid: number } | undefined> {
  if (userInfo().uid !== 0) return undefined;
  const accounts = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  const account = [...(wanted ? [wanted] : ['holdfast', 'postgres', 'nobody'])].flatMap((name) => accounts.filter((fields) => fields[0] === name)).at(0);
  if (!account) throw new Error(`PostgreSQL does not run as root and there is no user ${wanted ?? 'holdfast, postgres or nobody'}; set PG_INITDB_USER.`);
  return { uid: Number(account[2]), gid: Number(account[3]) };
}

function settingsOf({ port, settings }: EmbeddedPostgresOptions): string[] {
  const all = { listen_addresses: '127.0.0.1', port: String(port), unix_socket_directories: '', max_connections: '200', shared_buffers: '64MB', ...settings };
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

async function initialise(binaries: PostgresBinaries, options: EmbeddedPostgresOptions, user: { uid: number; gid: number } | undefined): Promise<void> {
  const fresh = `${options.dataDir}.new`;
  const passwordFile = `${options.dataDir}.pw`;
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { mode: 0o700 });
  await writeFile(passwordFile, options.password, { mode: 0o600 });
  if (user) for (const path of [fresh, passwordFile]) await chown(path, user.uid, user.gid);
  try {
    await run(binaries.initdb, ['-D', fresh, '-U', superuser, '-E', 'UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C',
      '--auth=scram-sha-256', `--pwfile=${passwordFile}`, '--data-checksums', ...(options.settings?.['fsync'] === 'off' ? ['--no-sync'] : [])],
    { ...user, cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8', TZ: 'UTC' }, timeout: 120_000 });
  } finally {
    await rm(passwordFile, { force: true });
  }
  await rename(fresh, options.dataDir);
}

/** Nothing of ours leaves a directory half-written, but disks and people do. It is kept, for there may be data in it. */
async function setAsideIncomplete({ dataDir, say }: EmbeddedPostgresOptions): Promise<void> {
  if (!(await exists(dataDir))) return;
  const whole = (await exists(join(dataDir, 'PG_VERSION'))) && (await exists(join(dataDir, 'global/pg_control')));
  if (whole) return;
  const aside = `${dataDir}.incomplete-${Date.now().toString(36)}`;
  await rename(dataDir, aside);
  say?.(`The database directory was incomplete: it is kept as ${aside}, a new one is made.`);
}

async function requireVersion(binaries: PostgresBinaries, dataDir: string): Promise<void> {
  const major = (await readFile(join(dataDir, 'PG_VERSION'), 'utf8')).trim();
  if (binaries.version.split('.')[0] === major) return;
  throw new Error(`${dataDir} was written by PostgreSQL ${major}, these programs are ${binaries.version}. Move it away to start with an empty one.`);
}

/** A server of a supervisor that was killed may still run here: only one whose working directory is this one is ended. */
async function endOrphan(dataDir: string): Promise<void> {
  const file = join(dataDir, 'postmaster.pid');
  const home = await realpath(dataDir);
  const pid = Number((await readFile(file, 'utf8').catch(() => '')).split('\n')[0]);
  if (!Number.isInteger(pid) || pid <= 1) return void (await rm(file, { force: true }));
  const ours = async () => (await readlink(`/proc/${pid}/cwd`).catch(() => '')) === home && (await identifyProcess(pid)) !== undefined;
  for (const name of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    if (!(await ours())) break;
    signal(pid, name);
    for (let waited = 0; waited < 100 && (await ours()); waited += 1) await pause(100);
  }
  await rm(file, { force: true });
}

async function untilAnswering(server: LeashedServer, url: string, { logFile, say }: EmbeddedPostgresOptions): Promise<void> {
  for (let attempt = 0; server.running; attempt += 1) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await ensureDatabase(client);
      return void (await client.end());
    } catch (error) {
      await client.end().catch(() => undefined);
      if (error instanceof Error && 'code' in error && error.code === '28P01') {
        await server.stop();
        throw new Error('The database refuses the kept password. Was .holdfast/secrets replaced?', { cause: error });
      }
      if (attempt === 60) say?.('The database is still recovering after its last stop.');
      await pause(attempt < 40 ? 25 : 100);
    }
  }
  throw new Error(`PostgreSQL ended while starting. Its last lines (${logFile}):\n${(await readFile(logFile, 'utf8').catch(() => '')).trimEnd().split('\n').slice(-5).join('\n')}`);
}

async function ensureDatabase(client: pg.Client): Promise<void> {
  const { rowCount } = await client.query('select from pg_database where datname = $1', [superuser]);
  if (rowCount === 0) await client.query(`create database ${superuser}`);
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(() => true, () => false);
}

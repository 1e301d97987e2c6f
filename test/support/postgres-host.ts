import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pino } from 'pino';
import { EmbeddedBackend } from '../../src/adapters/postgres-backend/embedded';
import { newId } from '../../src/core/ids';
import { ensurePostgresBinaries } from '../../src/db/postgres-binaries';
import { openInstallation } from '../../src/dev/installation';
import { InstanceSet } from '../../src/edge/postgres/host/instance-set';
import { startPostgresHost, type HostConfig, type HostTimes, type PostgresHost } from '../../src/edge/postgres/host/host';
import { prepareSite } from '../../src/edge/postgres/host/site';
import type { Login, Ref } from '../../src/postgres/ports';
import { namesOf, newPassword, planLimits, scramVerifier, type Plan } from '../../src/postgres/rules';

export { until } from './until';

export const silent = pino({ level: 'silent' });

/** The programs are copied once per clone, where every user can go, and not for every test. */
async function sharedBinaries(): Promise<string> {
  const { openDir } = await openInstallation(resolve('.holdfast'));
  const native = join(openDir, 'postgres/native');
  await ensurePostgresBinaries(native);
  return native;
}

/** A directory tree, ports and uids of its own for one test file. */
export class HostSite {
  private readonly open: (() => Promise<void>)[] = [];

  private constructor(readonly home: string, readonly config: HostConfig) {}

  /** Ports of another run beside this one are skipped by the host itself. */
  static async make(change: Partial<HostConfig> = {}): Promise<HostSite> {
    const home = await mkdtemp('/tmp/hf-host-');
    await chmod(home, 0o711);
    await mkdir(join(home, 'postgres'), { mode: 0o711 });
    await symlink(await sharedBinaries(), join(home, 'postgres/native'));
    const offset = (process.pid % 180) * 50;
    return new HostSite(home, {
      HOLDFAST_DATA_DIR: join(home, 'private'), HOLDFAST_INSTALLATION: 'testtest', PG_DATA_DIR: join(home, 'postgres'), PG_RUN_DIR: join(home, 'run'), PG_BACKUP_DIR: undefined,
      PG_INITDB_USER: undefined, PG_PORT_BASE: 21_000 + offset, PG_UID_BASE: 210_000 + offset, PG_HOST_SLOTS: 1_000, PG_CAPACITY_BYTES: undefined,
      PG_RESERVE_BYTES: 0, PG_POOL_PREPARED: 0, PG_POOL_RUNNING: 'trial:0', PG_STOP_ON_EXIT: true, ...change,
    });
  }

  get runDir(): string { return join(this.home, 'run'); }
  get dataDir(): string { return join(this.home, 'postgres'); }

  async start(change: Partial<HostConfig> = {}, times?: HostTimes): Promise<PostgresHost> {
    const host = await startPostgresHost({ ...this.config, ...change }, silent, times);
    this.closeLater(() => host.stop());
    return host;
  }

  /** What a failed test leaves open is closed with the site; closing twice does no harm. */
  closeLater(close: () => Promise<void>): void {
    this.open.push(close);
  }

  /** The host in a process that can be killed; killed with the site, if a failed test leaves it. */
  async startProcess(change: Partial<HostConfig> = {}): Promise<ChildProcess> {
    const child = fork(resolve(__dirname, 'postgres-host-process.ts'), [JSON.stringify({ ...this.config, ...change })],
      { execArgv: ['-r', resolve(__dirname, 'typescript.cjs')], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    const [message] = await Promise.race([once(child, 'message'), once(child, 'exit').then(([code]) => [`exit ${code}`])]);
    this.closeLater(async () => void child.kill('SIGKILL'));
    if (message !== 'ready') throw new Error(`The host process did not start: ${message}`);
    return child;
  }

  backend(): EmbeddedBackend {
    return new EmbeddedBackend({ runDir: this.runDir, publicAddress: () => ({ host: 'localhost', port: 6432 }) });
  }

  /** No process, no directory. For after the host has stopped or was killed. */
  async remove(): Promise<void> {
    for (const close of this.open.toReversed()) await close();
    await mkdir(join(this.dataDir, 'trash'), { recursive: true });
    const set = await InstanceSet.load(await prepareSite(this.config, silent));
    await Promise.all(set.all().map((instance) => instance.stop()));
    await rm(this.home, { recursive: true, force: true });
  }
}

export type TestService = { ref: Ref; password: string; login: Login };

/** A service that only a backend knows. */
export function newService(plan: Plan = 'trial', isolation: 'instance' | 'database' = 'instance'): TestService {
  const serviceId = newId('pg');
  const names = namesOf(serviceId, isolation);
  const password = newPassword();
  const limits = planLimits[plan];
  return {
    ref: { serviceId, generation: 1, hostId: 'test', instanceRef: null, names, limits },
    password,
    login: { name: names.logins[0], verifier: scramVerifier(password), connectionLimit: limits.connections, validUntil: null, enabled: true },
  };
}

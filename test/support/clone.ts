import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { chmod, mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
import { anyFreePort } from '../../src/dev/ports';
import { root } from './servers';

const devFile = z.object({
  apiUrl: z.url(),
  docsUrl: z.url(),
  temporalUiUrl: z.url(),
  dns: z.object({ host: z.string(), port: z.number() }),
  registry: z.object({ host: z.string(), port: z.number() }),
  gateway: z.object({ httpUrl: z.url(), httpsUrl: z.url() }),
  postgres: z.object({ host: z.string(), port: z.number() }),
  smtp: z.object({ host: z.string(), port: z.number() }),
  captureUrl: z.url(),
  processes: z.array(z.object({ name: z.string(), pid: z.number() })),
  demo: z.object({ email: z.string(), password: z.string(), orgSlug: z.string(), projectSlug: z.string(), mailServiceId: z.string(), mailDomain: z.string(), mailApiKey: z.string(), dnsApiKey: z.string() }),
});
export type DevFile = z.infer<typeof devFile>;

/** One installation under a directory of its own, started and stopped like a person does: by the supervisor's process. */
export class Clone {
  private supervisor: ChildProcess | undefined;
  private exited: Promise<number | null> | undefined;
  private startedAt = 0;
  output = '';

  private constructor(readonly dir: string, readonly settings: Record<string, string>) {}

  /** The build is brought up to date first; all default ports are replaced by ones nobody uses, or by the given. */
  static async make(env: Record<string, string> = {}): Promise<Clone> {
    await promisify(execFile)(process.execPath, ['--input-type=module', '-e', `import('${join(root, 'tools/prepare.mjs')}').then(({ prepare }) => prepare())`]);
    const parent = await mkdtemp(join(tmpdir(), 'holdfast-clone-'));
    await chmod(parent, 0o711);
    return new Clone(join(parent, '.holdfast'), { ...(await quietPorts()), ...env });
  }

  /** The same directory and settings: a second person in the same clone. */
  again(): Clone {
    return new Clone(this.dir, this.settings);
  }

  get pid(): number {
    return this.supervisor?.pid ?? 0;
  }

  start(): void {
    this.output = '';
    this.startedAt = Date.now();
    const child = spawn(process.execPath, ['dist/src/dev.js'], {
      cwd: root, env: { ...cleanEnvironment(), ...this.settings, HOLDFAST_DATA_DIR: this.dir }, stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => { this.output += text; });
    this.supervisor = child;
    this.exited = new Promise((resolve) => child.once('close', (code) => resolve(code)));
  }

  /** Starts it and waits until `dev.json` says it is ready. */
  async ready(): Promise<DevFile> {
    this.start();
    return this.until((file) => file.processes.length > 0);
  }

  /** The first `dev.json` of which the condition holds. Errors: the supervisor ended, or it took over 100 s. */
  async until(condition: (file: DevFile) => boolean | Promise<boolean>): Promise<DevFile> {
    for (const deadline = Date.now() + 100_000; Date.now() < deadline; await pause(50)) {
      const file = await this.devFile();
      if (file && (await condition(file))) return file;
      if (this.supervisor?.exitCode !== null) throw new Error(`The supervisor ended:\n${this.output}`);
    }
    throw new Error(`The condition did not come true:\n${this.output}`);
  }

  /** What this start has written, not what a killed one has left. */
  private async devFile(): Promise<DevFile | null> {
    const path = join(this.dir, 'dev.json');
    const written = await stat(path).then(({ mtimeMs }) => mtimeMs, () => 0);
    const text = written >= this.startedAt ? await readFile(path, 'utf8').catch(() => null) : null;
    return text === null ? null : devFile.parse(JSON.parse(text));
  }

  /** Waits until the supervisor has noted a process of this name, which need not be ready. */
  async started(name: string): Promise<void> {
    for (const deadline = Date.now() + 100_000; ; await pause(10)) {
      if ((await readFile(join(this.dir, 'processes.json'), 'utf8').catch(() => '')).includes(`"${name}"`)) return;
      if (Date.now() > deadline || this.supervisor?.exitCode !== null) throw new Error(`${name} was never started:\n${this.output}`);
    }
  }

  /** Waits for words on the terminal. */
  async says(words: string): Promise<void> {
    for (const deadline = Date.now() + 100_000; !this.output.includes(words); await pause(20)) {
      if (Date.now() > deadline || this.supervisor?.exitCode !== null) throw new Error(`It never said "${words}":\n${this.output}`);
    }
  }

  signal(name: NodeJS.Signals): void {
    this.supervisor?.kill(name);
  }

  /** The exit code, once it has ended. */
  async ended(): Promise<number | null> {
    return (await this.exited) ?? null;
  }

  /** Every process that has this installation's directory in its command line or environment. */
  async processes(): Promise<{ pid: number; command: string }[]> {
    const found: { pid: number; command: string }[] = [];
    for (const pid of (await readdir('/proc')).map(Number).filter((number) => number > 1 && number !== process.pid)) {
      const [command, environment] = await Promise.all(['cmdline', 'environ'].map((name) => readFile(`/proc/${pid}/${name}`, 'latin1').catch(() => '')));
      if (command?.includes(this.dir) || environment?.includes(this.dir)) found.push({ pid, command: command?.replaceAll('\0', ' ') ?? '' });
    }
    return found;
  }

  /** Waits until none of them is left. Errors: after 60 s, with those that are. */
  async gone(): Promise<void> {
    for (const deadline = Date.now() + 60_000; ; await pause(100)) {
      const left = await this.processes();
      if (left.length === 0) return;
      if (Date.now() > deadline) throw new Error(`Left behind: ${JSON.stringify(left, null, 2)}\n${this.output}`);
    }
  }

  /** Ends whatever runs and removes the directory. */
  async remove(): Promise<void> {
    if (this.supervisor?.exitCode === null) this.signal('SIGTERM');
    await this.exited;
    await this.gone();
    await rm(join(this.dir, '..'), { recursive: true, force: true });
  }
}

/** Settings of this run must not reach the installation: it is to find its own database and Temporal. */
function cleanEnvironment(): Record<string, string> {
  return Object.fromEntries(['PATH', 'HOME', 'TEMPORAL_BIN', 'XDG_CACHE_HOME', 'TMPDIR'].flatMap((key) => (process.env[key] ? [[key, process.env[key]]] : [])));
}

async function quietPorts(): Promise<Record<string, string>> {
  const [gateway, dns] = [await anyFreePort(), await anyFreePort()];
  return {
    API_ADDR: `127.0.0.1:${await anyFreePort()}`,
    METRICS_ADDR: `127.0.0.1:${await anyFreePort()}`,
    DATABASE_PORT: String(await anyFreePort()),
    TEMPORAL_PORT: String(await anyFreePort()),
    TEMPORAL_UI_PORT: String(await anyFreePort()),
    PG_GATEWAY_ADDR: `127.0.0.1:${gateway},[::1]:${gateway}`,
    DNS_LISTEN: `127.0.0.1:${dns},127.0.0.2:${dns}`,
    DNS_REGISTRY_PORT: String(await anyFreePort()),
    GATEWAY_HTTP_ADDR: `127.0.0.1:${await anyFreePort()}`,
    GATEWAY_HTTPS_ADDR: `127.0.0.1:${await anyFreePort()}`,
    GATEWAY_ADMIN_ADDR: `127.0.0.1:${await anyFreePort()}`,
    MAIL_INBOUND_PORT: String(await anyFreePort()),
    PG_POOL_PREPARED: '0',
    PG_POOL_RUNNING: 'trial:0',
  };
}

/**
 * Queries per second of one process on one core beside PowerDNS 4 with SQLite on the same core, in alternating rounds of the
 * same minutes; the client has the other core. Then the 99th percentile of our latency at half of what we reached.
 * Beside the rate stands how much of the core the server got: on a machine with other work a rate says little.
 * Needs dnsperf, pdns_server with its sqlite3 backend, sqlite3 and taskset; says which is missing and measures nothing.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog } from '../src/core/log';
import { startDnsServer } from '../src/edge/dns/server';
import { fullZone, HandFeed } from '../test/support/dns-feed';
import { percentile, print } from './statistics';

const names = 5000;
const missing = 500;
const rounds = Number(process.env['ROUNDS'] ?? 5);
const seconds = Number(process.env['SECONDS'] ?? 20);
const ports = { ours: 11091, powerdns: 11092 };
type Who = keyof typeof ports;
const domain = 'bench.test';
const target = { queriesPerSecond: 80_000, ratio: 1.5, p99Ms: 2 };

/** `core`: share of the core the server used. */
type Run = { queriesPerSecond: number; lost: number; core: number };

async function main(): Promise<void> {
  if (process.argv[2] === 'serve') return serve();
  const absent = ['dnsperf', 'pdns_server', 'sqlite3', 'taskset'].filter((tool) => spawnSync('which', [tool]).status !== 0);
  if (absent.length > 0) return print(`dns-throughput: not measured, not installed: ${absent.join(', ')}`);
  const folder = mkdtempSync(join(tmpdir(), 'dns-throughput-'));
  const servers: Partial<Record<Who, ChildProcess>> = {};
  try {
    servers.powerdns = startPowerDns(folder);
    servers.ours = startOurs();
    await Promise.all([answering(ports.ours), answering(ports.powerdns)]);
    const questions = join(folder, 'questions');
    writeFileSync(questions, shuffled().join('\n'));
    await measure(questions, { ours: servers.ours.pid ?? 0, powerdns: servers.powerdns.pid ?? 0 });
  } finally {
    for (const server of Object.values(servers)) server.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(questions: string, pids: Record<Who, number>): Promise<void> {
  const runs: Record<Who, Run[]> = { ours: [], powerdns: [] };
  for (let round = 0; round < rounds; round++) {
    for (const who of ['ours', 'powerdns'] as const) {
      const run = await load(ports[who], questions, pids[who]);
      runs[who].push(run);
      print(`round ${round + 1}  ${who.padEnd(8)} ${Math.round(run.queriesPerSecond).toLocaleString('en')} q/s, lost ${run.lost}, ${Math.round(run.core * 100)} % of the core`);
    }
  }
  const ours = percentile(runs.ours.map((run) => run.queriesPerSecond), 0.5);
  const powerdns = percentile(runs.powerdns.map((run) => run.queriesPerSecond), 0.5);
  const p99 = await latencyAt(ours / 2, questions);
  print(`median: ours ${Math.round(ours).toLocaleString('en')} q/s (target ${target.queriesPerSecond.toLocaleString('en')}), PowerDNS ${Math.round(powerdns).toLocaleString('en')} q/s, ratio ${(ours / powerdns).toFixed(2)} (target ${target.ratio})`);
  print(`p99 at half load: ${p99.toFixed(2)} ms (target ${target.p99Ms})`);
}

async function load(port: number, questions: string, pid: number): Promise<Run> {
  const [usedBefore, startedMs] = [cpuMs(pid), performance.now()];
  const out = await dnsperf(['-p', `${port}`, '-d', questions, '-l', `${seconds}`, '-c', '8', '-q', '200']);
  const core = (cpuMs(pid) - usedBefore) / (performance.now() - startedMs);
  return { queriesPerSecond: Number(/Queries per second:\s+([\d.]+)/.exec(out)?.[1]), lost: Number(/Queries lost:\s+(\d+)/.exec(out)?.[1]), core };
}

/** Processor time of a process so far, user and system, of all its threads (proc(5): fields 14 and 15, in hundredths). */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** 99th percentile in milliseconds; dnsperf tells the latency of each query in seconds. */
async function latencyAt(queriesPerSecond: number, questions: string): Promise<number> {
  const out = await dnsperf(['-p', `${ports.ours}`, '-d', questions, '-l', '10', '-c', '8', '-Q', `${Math.round(queriesPerSecond)}`, '-v']);
  const latencies = [...out.matchAll(/^> (?:NOERROR|NXDOMAIN) \S+ \S+ ([\d.]+)/gm)].map((match) => Number(match[1]));
  return percentile(latencies, 0.99) * 1000;
}

async function dnsperf(args: readonly string[]): Promise<string> {
  const client = spawn('taskset', ['-c', '1', 'dnsperf', '-s', '127.0.0.1', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  client.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(client, 'close');
  return Buffer.concat(chunks).toString('latin1');
}

function startOurs(): ChildProcess {
  return spawn('taskset', ['-c', '0', process.execPath, ...process.execArgv, __filename, 'serve'], { stdio: ['ignore', 'ignore', 'inherit'] });
}

async function serve(): Promise<void> {
  const lines = Array.from({ length: names - missing }, (_, i) => `n${i} A 300 192.0.2.${i % 250}`);
  await startDnsServer({
    listen: [{ host: '127.0.0.1', port: ports.ours }], feed: new HandFeed([fullZone(domain, lines)]), rateLimit: { perSecond: 0, exempt: [] },
    transfer: { keys: [], allow: [] }, notify: [], nowMs: Date.now, log: createLog('dns-throughput', 'warn'),
  });
}

/** One receiver thread, caches at their defaults: the shape its documentation gives for one core. */
function startPowerDns(folder: string): ChildProcess {
  const database = join(folder, 'zones.sqlite3');
  const schema = readFileSync('/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql', 'utf8');
  const rows = Array.from({ length: names - missing }, (_, i) => `INSERT INTO records (domain_id,name,type,content,ttl,auth) VALUES (1,'n${i}.${domain}','A','192.0.2.${i % 250}',300,1);`);
  const zone = [
    `INSERT INTO domains (id,name,type) VALUES (1,'${domain}','NATIVE');`,
    `INSERT INTO records (domain_id,name,type,content,ttl,auth) VALUES (1,'${domain}','SOA','ns1.platform.test hostmaster.platform.test 1 7200 3600 1209600 300',3600,1);`,
    `INSERT INTO records (domain_id,name,type,content,ttl,auth) VALUES (1,'${domain}','NS','ns1.platform.test',3600,1);`,
  ];
  const loaded = spawnSync('sqlite3', [database], { input: `${schema}\nBEGIN;\n${[...zone, ...rows].join('\n')}\nCOMMIT;\n` });
  if (loaded.status !== 0) throw new Error(`sqlite3: ${loaded.stderr.toString()}`);
  return spawn('taskset', ['-c', '0', 'pdns_server', `--config-dir=${folder}`, `--socket-dir=${folder}`, '--daemon=no', '--guardian=no', '--launch=gsqlite3',
    `--gsqlite3-database=${database}`, '--local-address=127.0.0.1', `--local-port=${ports.powerdns}`, '--receiver-threads=1', '--loglevel=3', '--disable-syslog'],
  { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Resolves when the server answers; asks every 50 ms. */
async function answering(port: number): Promise<void> {
  const socket = createSocket('udp4');
  const question = Buffer.from(`0001000000010000000000000562656e6368047465737400000600 01`.replaceAll(' ', ''), 'hex');
  const timer = setInterval(() => socket.send(question, port, '127.0.0.1'), 50);
  await once(socket, 'message');
  clearInterval(timer);
  socket.close();
}

/** Every name once, in an order that is the same in each run. */
function shuffled(): string[] {
  const questions = Array.from({ length: names }, (_, i) => `n${i}.${domain} A`);
  let seed = 42;
  for (let i = questions.length - 1; i > 0; i--) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    const j = seed % (i + 1);
    [questions[i], questions[j]] = [questions[j] ?? '', questions[i] ?? ''];
  }
  return questions;
}

void main();

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SmtpRelayTransport } from '../../src/adapters/mail-transport/smtp-relay';
import { anyFreePort } from '../../src/dev/ports';
import { transportJob } from '../../test/support/transport-job';
import { text, waitFor } from '../support/mail-load';
import type { MailSink } from '../support/mail-sink';

const run = promisify(execFile);

/** Another mail server that queues durably and passes all mail on to the sink. */
export type MailPeer = { name: string; open(sink: MailSink): Promise<OpenPeer | { absent: string }> };
export type OpenPeer = { port: number; close(): Promise<void> };

/** Haraka from npm, installed beside nothing of ours; its outbound queue on disk, no DKIM. */
export const haraka: MailPeer = {
  name: 'Haraka 3.3.4',
  async open(sink) {
    const home = await mkdtemp(join(tmpdir(), 'holdfast-bench-haraka-'));
    await writeFile(join(home, 'package.json'), JSON.stringify({
      private: true, dependencies: { Haraka: '3.3.4' }, overrides: { 'encoding-japanese': '2.2.0', libqp: '2.1.1' }, // the versions its parser asks for are not in every registry
    }));
    const installed = await run('npm', ['install', '--prefix', home, '--no-audit', '--no-fund', '--ignore-scripts', '--omit=optional', '--loglevel', 'error'], { timeout: 120_000 }).then(() => null, (error: unknown) => String(error).slice(-300));
    if (installed !== null) {
      await rm(home, { recursive: true, force: true });
      return { absent: `it could not be installed: ${installed}` };
    }
    const port = await anyFreePort();
    const files: Record<string, string> = {
      'config/smtp.ini': `listen=127.0.0.1:${port}\nnodes=0\ndaemonize=false\n`, 'config/plugins': 'bench\n', 'config/loglevel': 'LOGERROR\n', 'config/me': 'bench.test\n', 'config/host_list': 'bench.test\n',
      'config/outbound.ini': 'disabled=false\nenable_tls=false\nlocal_mx_ok=true\nconcurrency_max=100\n', 'config/connection.ini': await readFile(join(home, 'node_modules/Haraka/config/connection.ini'), 'utf8').catch(() => ''),
      'plugins/bench.js': `exports.register = function () {};
exports.hook_mail = (next, connection) => { connection.relaying = true; next(OK); };
exports.hook_rcpt = (next, connection) => { connection.relaying = true; next(OK); };
exports.hook_get_mx = (next) => next(OK, { priority: 0, exchange: '127.0.0.1', port: ${sink.port} });
`,
    };
    for (const folder of ['config', 'plugins', 'queue']) await mkdir(join(home, folder), { recursive: true });
    for (const [file, content] of Object.entries(files)) await writeFile(join(home, file), content);
    const child = spawn(process.execPath, [join(home, 'node_modules/Haraka/bin/haraka'), '-c', home], { cwd: home, stdio: ['ignore', 'pipe', 'pipe'] });
    return opened({ home, port, child });
  },
};

/** Debian's Postfix with directories of its own; needs root. */
export const postfix: MailPeer = {
  name: 'Postfix (Debian)',
  async open(sink) {
    const version = await run('postconf', ['-d', 'mail_version']).then(({ stdout }) => stdout.trim(), () => null);
    if (version === null) return { absent: 'it is not installed (apt-get install postfix)' };
    if (process.getuid?.() !== 0) return { absent: 'it starts as root only' };
    const home = await mkdtemp(join(tmpdir(), 'holdfast-bench-postfix-'));
    await chmod(home, 0o755);
    const port = await anyFreePort();
    const master = await readFile('/etc/postfix/master.cf', 'utf8').catch(() => readFile('/usr/share/postfix/master.cf.dist', 'utf8'));
    await mkdir(join(home, 'etc'));
    await mkdir(join(home, 'queue'));
    await mkdir(join(home, 'data'));
    await run('chown', ['postfix', join(home, 'data')]);
    await writeFile(join(home, 'etc/master.cf'), master.split('\n').map((line) => {
      if (/^smtp\s+inet/.test(line)) return `127.0.0.1:${port} inet n - n - - smtpd`;
      return /^\S+\s+(?:inet|unix|fifo|pass)\s/.test(line) ? line.replace(/^(\S+\s+\S+\s+\S+\s+\S+\s+)y(\s)/, '$1n$2') : line;
    }).join('\n'));
    await writeFile(join(home, 'etc/main.cf'), [
      'compatibility_level = 3.6', `queue_directory = ${home}/queue`, `data_directory = ${home}/data`, `maillog_file = ${home}/log`, `maillog_file_prefixes = ${home}`, 'inet_interfaces = 127.0.0.1', 'inet_protocols = ipv4',
      'mydestination =', 'mynetworks = 127.0.0.0/8', 'smtpd_relay_restrictions = permit_mynetworks, reject', 'alias_maps =', 'alias_database =', 'local_recipient_maps =', `relayhost = [127.0.0.1]:${sink.port}`, 'smtp_tls_security_level = none',
      'default_destination_concurrency_limit = 100', 'initial_destination_concurrency = 20', 'myhostname = bench.test', 'smtpd_client_connection_count_limit = 0', 'smtpd_client_connection_rate_limit = 0', 'smtpd_peername_lookup = no', '',
    ].join('\n'));
    const started = await postfixDoes('start', join(home, 'etc'));
    const close = async () => {
      await postfixDoes('stop', join(home, 'etc'));
      await rm(home, { recursive: true, force: true });
    };
    if (started === 0 && await waitFor(() => answers(port), 15_000)) return { port, close };
    await close();
    return { absent: `it did not start (exit ${started})` };
  },
};

/** Its exit code. Its servers would hold a pipe open, so there is none. */
function postfixDoes(verb: 'start' | 'stop', etc: string): Promise<number | null> {
  return new Promise((done) => spawn('postfix', ['-c', etc, verb], { stdio: 'ignore' }).once('exit', done).once('error', () => done(null)));
}

async function opened({ home, port, child }: { home: string; port: number; child: ChildProcess }): Promise<OpenPeer | { absent: string }> {
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes: Buffer) => { said = (said + bytes.toString()).slice(-2_000); });
  const close = async () => {
    if (child.exitCode === null) {
      const gone = new Promise((done) => child.once('exit', done));
      child.kill('SIGKILL');
      await gone;
    }
    await rm(home, { recursive: true, force: true });
  };
  if (await waitFor(() => child.exitCode !== null || answers(port), 20_000) && child.exitCode === null) return { port, close };
  await close();
  return { absent: `it did not start: ${said.slice(-300)}` };
}

function answers(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ host: '127.0.0.1', port });
    const end = (spoke: boolean) => {
      socket.destroy();
      done(spoke);
    };
    socket.setTimeout(2_000, () => end(false));
    socket.once('data', () => end(true)).once('error', () => end(false));
  });
}

export type PeerFigures = { acceptedPerSecond: number; p50Ms: number; p99Ms: number; deliveredPerSecond: number; mails: number };

/** Feeds the peer with mails of 5 KiB over 20 kept connections: how fast it takes them for good, and how fast all are at the sink. */
export async function measurePeer(peer: OpenPeer, sink: MailSink, { count, giveUpMs }: { count: number; giveUpMs: number }): Promise<PeerFigures> {
  sink.clear();
  const feeder = new SmtpRelayTransport({ url: `smtp://127.0.0.1:${peer.port}`, connections: 20, tls: 'off', heloName: 'bench.test', timeoutMs: 60_000 });
  const bounded = AbortSignal.timeout(giveUpMs);
  const times: number[] = [];
  const startedAt = performance.now();
  let next = 0;
  await Promise.all(Array.from({ length: 20 }, async () => {
    for (let i = next++; i < count && !bounded.aborted; i = next++) {
      const job = transportJob({ recipient: `r${i}@y.test`, envelopeFrom: 'a@bench.test' });
      const at = performance.now();
      const { outcome } = await feeder.send({ ...job, mime: Buffer.from(`From: a@bench.test\r\nTo: r${i}@y.test\r\nSubject: Hello\r\nMessage-ID: <${job.messageId}@bench.test>\r\n\r\n${text.replaceAll('\n', '\r\n')}`) }, bounded);
      if (outcome === 'accepted') times.push(performance.now() - at);
    }
  }));
  const acceptedSeconds = (performance.now() - startedAt) / 1_000;
  await feeder.close();
  await waitFor(() => sink.mails >= count, giveUpMs);
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return {
    acceptedPerSecond: times.length / acceptedSeconds, p50Ms: at(0.5), p99Ms: at(0.99), mails: sink.mails, deliveredPerSecond: sink.mails / ((performance.now() - startedAt) / 1_000),
  };
}

/** Each peer that is there, one after the other; one that is not is told of. */
export async function withMailPeers(sink: MailSink, say: (line: string) => void, measure: (name: string, peer: OpenPeer) => Promise<void>): Promise<void> {
  for (const { name, open } of [haraka, postfix]) {
    const peer = await open(sink);
    if ('absent' in peer) {
      say(`${name} is left out: ${peer.absent}`);
      continue;
    }
    try {
      await measure(name, peer);
    } finally {
      await peer.close();
    }
  }
}

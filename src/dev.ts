import { readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ConfigError, loadSupervisorConfig } from './config';
import { createLog } from './core/log';
import { claimAddresses, formatAddress, type Addresses } from './dev/addresses';
import { describe, welcome, writeDevFile, type Demo } from './dev/announcement';
import { claimFile } from './dev/claims';
import { hostDemoZone } from './dev/demo';
import { askAsDemoOwner } from './dev/demo-api';
import { ensureDemoMail } from './dev/demo-mail';
import { keepDemo, openInstallation, type Installation } from './dev/installation';
import { endLeftovers, recordProcesses } from './dev/leftovers';
import { PortClaims } from './dev/ports';
import { say, step } from './dev/progress';
import { children, System } from './dev/system';

/**
 * The supervisor: one machine, everything Holdfast needs, one Ctrl-C. It runs in the repository's folder (tools/start.mjs
 * takes care of that) and keeps what it makes in HOLDFAST_DATA_DIR.
 */
async function main(): Promise<void> {
  const { config, given } = loadSupervisorConfig();
  const installation = await openInstallation(config.HOLDFAST_DATA_DIR);
  const own = await claimFile(join(installation.dir, 'supervisor.pid'));
  if (!own.claimed) return refuse(installation, own.ownerPid);
  const claims = new PortClaims();
  const devFile = join(installation.dir, 'dev.json');
  const processFile = join(installation.dir, 'processes.json');
  await rm(devFile, { force: true });
  await endLeftovers(processFile, say);
  const addresses = await claimAddresses(config, claims, children.map(({ name }) => name), say);
  const login = await keepDemo(installation.dir, { email: config.DEMO_OWNER_EMAIL, password: config.DEMO_OWNER_PASSWORD });
  let demo: Demo = { ...login, orgSlug: 'demo', projectSlug: 'default', mailServiceId: null, mailDomain: null, mailApiKey: null, dnsApiKey: null };

  let ready = false;
  const publish = serially(async () => {
    const processes = system.processes();
    await recordProcesses(processFile, processes);
    if (ready) await writeDevFile(devFile, describe(addresses, { temporalIsOurs: !config.TEMPORAL_ADDRESS, demo, processes, authorityFile: system.authorityFile }));
  });
  const system = new System({
    config, given, installation, addresses, login, root: resolve('.'), say, log: createLog('supervisor', 'warn'), changed: () => void publish(),
  });
  const end = onceStopped(system, async () => {
    ready = false;
    await publish();
    await rm(devFile, { force: true });
    await claims.release();
    await own.release();
  });
  try {
    await system.start();
    demo = await prepareDemo({ addresses, installation, demo, say });
    ready = true;
    await publish();
    announce(addresses, config.TEMPORAL_ADDRESS === undefined, demo, system);
  } catch (error) {
    await end(1, error);
  }
}

/** What the demo project begins with. A demo that was changed or deleted is its owner's matter: the platform runs without. */
async function prepareDemo({ addresses, installation, demo, say }: { addresses: Addresses; installation: Installation; demo: Demo; say: (text: string) => void }): Promise<Demo> {
  const tried = <T>(what: string, work: () => Promise<T>): Promise<T | null> => work().catch((error: unknown) => {
    say(`${what} is not there yet (${messageOf(error)}); the next start tries again.`);
    return null;
  });
  const ask = await tried('The demo project', () => askAsDemoOwner(`http://${formatAddress(addresses.api)}`, demo));
  if (!ask) return demo;
  if (addresses.registry) await tried('The demo zone', () => step('Hosting the demo zone', () => hostDemoZone(ask, installation.dir)));
  const mail = await tried('The demo mail service', () => step('Preparing the demo mail service', () => ensureDemoMail(ask, installation.dir)));
  return { ...demo, ...mail };
}

function announce(addresses: Addresses, temporalIsOurs: boolean, demo: Demo, system: System): void {
  const facts = describe(addresses, { temporalIsOurs, demo, processes: system.processes(), authorityFile: system.authorityFile });
  say(welcome(facts, (performance.now() / 1000).toFixed(1)));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'an unknown failure';
}

async function refuse(installation: Installation, ownerPid: number): Promise<void> {
  const running = await readFile(join(installation.dir, 'dev.json'), 'utf8').then((text) => /"apiUrl": "([^"]+)"/.exec(text)?.[1], () => undefined);
  process.stderr.write(`Holdfast already runs in this clone (process ${ownerPid}${running ? `, ${running}` : ', still starting'}). Stop it with Ctrl-C there first; another clone may run beside it.\n`);
  process.exitCode = 1;
}

/**
 * Ends the system on SIGINT, SIGTERM, SIGHUP or a failed start, then the process. A second signal kills what is left; those
 * within a second of the first do not count, for npm passes on the Ctrl-C that the terminal has already sent.
 */
function onceStopped(system: System, cleanUp: () => Promise<void>): (code: number, error?: unknown) => Promise<void> {
  let firstAt: number | undefined;
  const end = async (code: number, error?: unknown): Promise<void> => {
    if (firstAt !== undefined) return;
    firstAt = performance.now();
    if (error !== undefined) process.stderr.write(`\nHoldfast could not start: ${messageOf(error)}\n`);
    else say('\nStopping (Ctrl-C again stops at once) …');
    await system.stop();
    await cleanUp();
    say('Stopped.');
    process.exit(code);
  };
  const onSignal = () => {
    if (firstAt === undefined) void end(0);
    else if (performance.now() - firstAt > 1_000) void system.kill().then(cleanUp).finally(() => process.exit(1));
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, onSignal);
  process.on('uncaughtException', (error) => void end(1, error));
  process.stdout.on('error', () => undefined);
  return end;
}

/** Runs `work` one at a time; calls that come while it runs are one more run after it. */
function serially(work: () => Promise<void>): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return () => (last = last.catch(() => undefined).then(work));
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error && !(error instanceof ConfigError) ? error.stack : messageOf(error)}\n`);
  process.exit(1);
});

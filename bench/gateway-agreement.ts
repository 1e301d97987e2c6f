/**
 * Our engine and nginx with ModSecurity 3 judge the same corpora with the same Core Rule Set, detection only: on how many requests are the ids of the
 * matching rules the same, on how many what detectSQLi and detectXSS say. Rules that only add up (949, 959, 980) and those of each engine's own body checks are left out.
 * Needs nginx, libnginx-mod-http-modsecurity and modsecurity-crs; says which is missing and measures nothing. CRS_DIR names another rule set.
 */
import { connect, type Socket } from 'node:net';
import { createRuleEngine } from '../src/edge/gateway/seclang/engine';
import { loadSets } from '../src/edge/gateway/seclang/sets';
import { attacks, benign, type CorpusRequest, factsOf } from '../test/support/gateway-corpus';
import { managedSettings } from '../test/support/managed-settings';
import { missingForModSecurity, startModSecurity } from './peers/modsecurity';
import { print } from './statistics';

const crsDir = process.env['CRS_DIR'] ?? '/usr/share/modsecurity-crs';
const port = 17_080;
const target = { rules: 0.97, detectors: 0.995 };
const detectors = new Set(['941100', '941101', '942100', '942101']);
const counts = (id: string) => !/^(?:200|901|949|959|980)\d{3}$|^95000\d\d$/.test(id);

async function main(): Promise<void> {
  const missing = missingForModSecurity(crsDir);
  if (missing.length > 0) return print(`gateway-agreement: not measured, not installed: ${missing.join(', ')}`);
  const asked = [...[...attacks().values()].flat(), ...benign()].map((request, index) => ({ ...request, headers: [...request.headers, ['x-corpus', String(index)] as const], index: String(index) }));
  const theirs = await askPeer(asked);
  // nginx itself refuses some methods and paths before ModSecurity sees them.
  const requests = asked.filter(({ index }) => theirs.has(index));
  const { sets } = loadSets({ crsDir, rulesDir: null });
  const engine = createRuleEngine({ sets, elsewhere: null, budgetMs: 10_000 });
  let [same, sameDetectors] = [0, 0];
  for (const request of requests) {
    const verdict = await engine.inspectRequest(factsOf(request), managedSettings({ ruleSet: 'crs' }), 0);
    const [ours, peer] = [new Set(verdict.matches.map(({ id }) => id).filter(counts)), new Set((theirs.get(request.index) ?? []).filter(counts))];
    const different = [...[...ours].filter((id) => !peer.has(id)), ...[...peer].filter((id) => !ours.has(id))];
    if (different.length === 0) same += 1;
    else if (process.env['SHOW']) print(`${request.name.slice(0, 120)}  ours ${[...ours].join(' ')}  theirs ${[...peer].join(' ')}`);
    if (!different.some((id) => detectors.has(id))) sameDetectors += 1;
  }
  const percent = (count: number) => `${((100 * count) / requests.length).toFixed(2)} %`;
  print(`requests                    ${requests.length}; ${asked.length - requests.length} refused by nginx itself`);
  print(`equal rule ids              ${percent(same)} (target ${100 * target.rules} %)`);
  print(`equal detectSQLi, detectXSS ${percent(sameDetectors)} (target ${100 * target.detectors} %)`);
}

async function askPeer(requests: readonly CorpusRequest[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const peer = await startModSecurity({ crsDir, port, engine: 'DetectionOnly', origin: null, core: null });
  try {
    for (const request of requests) await send(request);
    return peer.matchedRules();
  } finally {
    await peer.stop();
  }
}

/** One request over a connection of its own; resolves when the answer is complete. */
async function send({ method, target: path, headers, body }: CorpusRequest): Promise<void> {
  const head = [`${method} ${path} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${name === 'connection' ? 'close' : value}`), '', ''].join('\r\n');
  await new Promise<void>((resolve, reject) => {
    const socket: Socket = connect(port, '127.0.0.1', () => { socket.end(Buffer.concat([Buffer.from(head, 'latin1'), body ?? Buffer.alloc(0)])); });
    socket.on('data', () => undefined).on('close', () => { resolve(); }).on('error', reject);
  });
}

main().catch((error: unknown) => { print(String(error)); process.exitCode = 1; });

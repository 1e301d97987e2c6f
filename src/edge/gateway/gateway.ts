import type { Registry } from 'prom-client';
import { createSelfSigned } from '../../core/certificates';
import type { Log } from '../../core/log';
import type { Secrets } from '../../core/secrets';
import type { Database } from '../../db/client';
import type { Listener } from '../../db/listen';
import type { EventSink } from '../../gateway/ports';
import type { Policy } from '../../gateway/schemas';
import { findAcmeToken } from '../../gateway/store/feed';
import { CertificateStore } from './certificates';
import { inNetworks } from './client-address';
import { Feed, type ZoneRoutes } from './feed';
import { Handler, type HandlerOptions } from './handler';
import type { MakeJudge } from './judge';
import { Listeners } from './listeners';
import { createGatewayMetrics } from './metrics';
import { RestingAddresses } from './origin-access';
import { OriginHealth } from './origin-health';
import { OriginAgent } from './origin-agent';
import { OriginNames, type ResolveName } from './origin-names';
import { SlowBodies } from './request-body';
import { readSnapshot, SnapshotWriter } from './snapshot';
import { ZoneTable } from './zone-table';

export type GatewayDeps = {
  http: string; https: string;
  db: Database; listener: Listener; secrets: Secrets; log: Log; registry: Registry;
  /** Of this process: unique among all that run. */
  instanceId: string;
  routes: ZoneRoutes; makeJudge: MakeJudge; defaultPolicy: Policy; sink: EventSink;
  describe: HandlerOptions['describe'];
  resolveName: ResolveName;
  mayDial: (address: string, port: number) => boolean;
  trustedProxies: readonly string[];
  /** Names this installation in CDN-Loop (RFC 8586). Lower case. */
  loopToken: string;
  bodyBytesMax: number;
  snapshotFile: string | null;
  /** One of several processes keeps the file for all. */
  writesSnapshot?: boolean;
  /** How many processes like this share the work. */
  share: number;
  agent?: OriginAgent;
};

export type Gateway = {
  readonly addresses: { http: string; https: string };
  readonly zones: () => number;
  /** No more is accepted; what is on its way has `graceMs`. */
  stop(graceMs: number): Promise<void>;
};

/** One process of the security gateway: knows every zone, then listens (contract gateway.md §2, instance). Errors: an address is taken. */
export async function startGateway(deps: GatewayDeps): Promise<Gateway> {
  const { db, log, secrets, snapshotFile } = deps;
  const metrics = createGatewayMetrics(deps.registry);
  const zones = new ZoneTable(deps.defaultPolicy, deps.makeJudge);
  const health = new OriginHealth();
  const feed = new Feed({ ...deps, zones, metrics, health, remembered: async () => (snapshotFile === null ? null : readSnapshot(snapshotFile, secrets, log)) });
  await feed.start();
  const snapshot = snapshotFile === null || deps.writesSnapshot === false ? null : new SnapshotWriter(snapshotFile, zones, secrets, log);
  void snapshot?.write();
  const slowBodies = new SlowBodies();
  const isTrusted = inNetworks(deps.trustedProxies);
  const agent = deps.agent ?? new OriginAgent();
  const handler = new Handler({
    ...deps, zones, metrics, slowBodies, isTrusted, agent, access: { names: new OriginNames(deps.resolveName), resting: new RestingAddresses(Date.now), health, mayDial: deps.mayDial },
    acmeToken: acmeTokens(db),
  });
  const certificates = new CertificateStore(zones, secrets, log);
  const listeners = new Listeners({
    http: deps.http, https: deps.https, fallback: createSelfSigned('invalid'), contextFor: (name) => certificates.contextFor(name), serve: (arrival) => handler.serve(arrival), isTrusted, metrics, share: deps.share,
  });
  const addresses = await listeners.start();
  return {
    addresses,
    zones: () => zones.size,
    async stop(graceMs) {
      await feed.drain();
      await listeners.drain(graceMs);
      slowBodies.close();
      agent.destroy();
      await snapshot?.close();
      await feed.stop();
    },
  };
}

const tokenForm = /^[A-Za-z0-9_-]{16,256}$/;
const lookUpsAtOnce = 8;

/** Each is one look-up in the database, few at a time: what is more, or of another form, is the origin's matter. */
function acmeTokens(db: Database): (token: string) => Promise<string | null> {
  let running = 0;
  return async (token) => {
    if (!tokenForm.test(token) || running >= lookUpsAtOnce) return null;
    running += 1;
    try {
      return await findAcmeToken(db, token);
    } finally {
      running -= 1;
    }
  };
}

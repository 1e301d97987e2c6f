import { availableParallelism } from 'node:os';
import { Gauge } from 'prom-client';
import { openGeoLookup } from './adapters/geo-lookup/choice';
import type { Config } from './config';
import { parseAddress } from './core/listen';
import type { Log } from './core/log';
import type { Metrics } from './core/metrics';
import type { CoreDeps } from './deps';
import type { DnsResolver } from './dns/ports';
import { mayBeOrigin, platformOf } from './dns/rules/platform';
import { listProxyVersions, loadProxyZone } from './dns/service';
import { originCheck } from './edge/gateway/origin-access';
import type { ResolveName } from './edge/gateway/origin-names';
import type { OpenParts } from './edge/gateway/role';
import { type StartedRuleEngine, startRuleEngine } from './edge/gateway/rule-engine';
import { openTraffic } from './edge/gateway/traffic';
import { createRetentionOf } from './gateway/retention';
import { policySchema } from './gateway/schemas';

/** The part of deps.ts that makes a process of the security gateway. Errors: a file of the operator cannot be read. */
export function gatewayParts({ config, db, log, metrics: { registry, operatorAlerts } }: CoreDeps, resolver: DnsResolver): OpenParts {
  return async ({ instanceId, index, workers, send }) => {
    const [geo, { engine, close }] = await Promise.all([openGeoLookup(config, log), openEngine(config, log, { registry, operatorAlerts })]);
    const { makeJudge, sink, describe, ...traffic } = await openTraffic({
      engine, geo, verifiedBotsFile: config.GATEWAY_VERIFIED_BOTS_FILE, masterKeys: config.HOLDFAST_MASTER_KEY, db, retentionOf: createRetentionOf(db), instanceId, spoolDir: config.GATEWAY_SPOOL_DIR, place: index, workers, send, registry, log,
    });
    const platform = platformOf(config);
    return {
      routes: { load: (zoneId) => loadProxyZone(db.prisma, zoneId), versions: (seconds) => listProxyVersions(db.prisma, seconds) },
      makeJudge, sink, describe, receive: traffic.receive,
      defaultPolicy: policySchema.parse({ mode: 'monitor', managedRules: { ruleSet: engine.versionOf('crs')?.startsWith('crs') ? 'crs' : 'base' } }),
      resolveName: resolveWith(resolver),
      mayDial: originCheck((address) => mayBeOrigin(platform, address), listening(config)),
      close: async () => {
        await traffic.close();
        geo.close();
        await close();
      },
    };
  };
}

const listedMax = 200;

/** The rule sets the operator has, judged here and, what takes long, in threads. A set that is refused is an alert; its zones use the other. */
async function openEngine({ CRS_DIR, GATEWAY_RULES_DIR, GATEWAY_ENGINE_THREADS }: Config, log: Log, { registry, operatorAlerts }: Pick<Metrics, 'registry' | 'operatorAlerts'>): Promise<StartedRuleEngine> {
  const started = startRuleEngine({ crsDir: CRS_DIR ?? null, rulesDir: GATEWAY_RULES_DIR, threads: GATEWAY_ENGINE_THREADS || availableParallelism() });
  const { refused, sets } = started.report;
  for (const { ruleSet, reason, skipped } of refused) {
    log.error({ ruleSet, reason, skipped }, 'a rule set cannot be used');
    operatorAlerts.inc({ action: 'refusedRuleSet' });
  }
  const rules = new Gauge({ registers: [registry], name: 'gateway_rules', help: 'Rules of a loaded set: running, skipped because this engine cannot run them, with expressions that see a prefix only', labelNames: ['set', 'state'] });
  const listed = new Gauge({ registers: [registry], name: 'gateway_rules_listed', help: 'Each rule of a loaded set that is skipped, and each expression that sees a prefix only', labelNames: ['set', 'state', 'what'] });
  for (const { version, rules: count, skipped, unguarded } of sets) {
    for (const [state, list] of [['skipped', skipped], ['prefix', unguarded]] as const) for (const what of list) listed.set({ set: version, state, what: what.slice(0, listedMax) }, 1);
    for (const [state, value] of [['running', count], ['skipped', skipped.length], ['prefix', unguarded.length]] as const) rules.set({ set: version, state }, value);
    log.info({ version, rules: count, skipped, unguarded }, 'a rule set is loaded');
  }
  await started.ready;
  return started;
}

/** Everything this installation listens on, as far as one process knows. */
function listening(config: Config): string[] {
  const database = new URL(config.DATABASE_URL);
  return [
    config.GATEWAY_HTTP_ADDR, config.GATEWAY_HTTPS_ADDR, config.GATEWAY_ADMIN_ADDR, config.API_ADDR, config.METRICS_ADDR, ...config.DNS_LISTEN, ...config.PG_GATEWAY_ADDR, config.TEMPORAL_ADDRESS,
    `${config.MAIL_INBOUND_HOST}:${config.MAIL_INBOUND_PORT}`, `${database.hostname || '127.0.0.1'}:${database.port || 5432}`,
    `127.0.0.1:${config.TEMPORAL_UI_PORT}`, `127.0.0.1:${config.PG_PORT_BASE}-${config.PG_PORT_BASE + config.PG_HOST_SLOTS - 1}`,
  ].filter((address) => parseAddress(address).port !== 0);
}

const budgetMs = 4_000;

/** IPv4 where there is any: not every machine reaches the other. */
function resolveWith(resolver: DnsResolver): ResolveName {
  return async (name) => {
    const found = await Promise.all((['A', 'AAAA'] as const).map((type) => resolver.resolve(name, type, { freshness: 'cached', budgetMs })));
    const lists = found.map(({ records }, i) => records.filter(({ type }) => type === (i === 0 ? 'A' : 'AAAA')).map(({ value }) => value));
    const at = (lists[0]?.length ?? 0) > 0 ? 0 : 1;
    if ((lists[at]?.length ?? 0) === 0 && found.some(({ conclusive }) => !conclusive)) throw new Error(`${name} cannot be resolved now.`);
    return { addresses: lists[at] ?? [], ttlSeconds: found[at]?.ttl ?? 0 };
  };
}

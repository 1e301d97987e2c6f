import { hkdfSync } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Gauge, type Registry } from 'prom-client';
import type { Log } from '../../core/log';
import type { Database } from '../../db/client';
import type { EventSink, GeoLookup, RequestFacts, RuleEngine } from '../../gateway/ports';
import { storeBatch } from '../../gateway/store/batches';
import { UsedTokens } from './challenge';
import { Events } from './events';
import { isSharedMessage, startExchange, type SharedMessage } from './exchange';
import type { MakeJudge } from './judge';
import { judgesOf } from './judges';
import { RateLimits } from './limits';
import { VerifiedBots } from './verified-bots';

export interface TrafficOptions {
  readonly engine: RuleEngine;
  readonly geo: GeoLookup;
  readonly verifiedBotsFile: string | undefined;
  /** The master keys, base64; keys of challenges derive from the first. */
  readonly masterKeys: readonly string[];
  readonly db: Database;
  readonly retentionOf: (zoneIds: readonly string[]) => Promise<ReadonlyMap<string, number>>;
  readonly instanceId: string;
  readonly spoolDir: string;
  /** Which of the workers this is, from 0; one process at a time has a place. */
  readonly place: number;
  readonly workers: number;
  /** To the process that forked this one; null when there is none. */
  readonly send: ((message: SharedMessage) => void) | null;
  readonly registry: Registry;
  readonly log: Log;
}

/** What one worker knows and keeps of its traffic. */
export interface Traffic {
  readonly makeJudge: MakeJudge;
  readonly sink: EventSink;
  describe(ip: string): Pick<RequestFacts, 'country' | 'asn' | 'isVerifiedBot'>;
  /** A message of the process that forked this one; others are ignored. */
  receive(message: unknown): void;
  /** Stores what was counted, or leaves it on disk. */
  close(): Promise<void>;
}

/** Everything around requests that outlives them: limits, spent challenges, counts and events. Errors: a file of the operator cannot be read. */
export async function openTraffic(options: TrafficOptions): Promise<Traffic> {
  const { engine, geo, db, log, place, workers, spoolDir, retentionOf, instanceId } = options;
  const bots = await VerifiedBots.open(options.verifiedBotsFile, log);
  const shared = { limits: new RateLimits({ shared: workers > 1 }), used: new UsedTokens() };
  const exchange = startExchange(shared, workers > 1 ? options.send : null);
  const events = await Events.open({
    instanceId, directory: placeIn(spoolDir, place), adopted: place === 0 ? await abandoned(spoolDir, workers) : [], store: (batch) => storeBatch(db, batch, retentionOf), log,
  });
  observe(options.registry, events);
  return {
    makeJudge: judgesOf({ engine, ...shared, secret: challengeSecret(options.masterKeys), log }),
    sink: events,
    describe: (ip) => ({ ...geo.lookup(ip), isVerifiedBot: bots.has(ip) }),
    receive: (message) => {
      if (isSharedMessage(message)) exchange.receive(message);
    },
    async close() {
      exchange.stop();
      bots.close();
      await events.close();
    },
  };
}

/** What keys of challenges derive from: the same in every process of the installation, and after a restart. */
function challengeSecret([masterKey = '']: readonly string[]): Buffer {
  return Buffer.from(hkdfSync('sha256', Buffer.from(masterKey, 'base64'), '', 'holdfast gateway challenges', 32));
}

function placeIn(spoolDir: string, place: number): string {
  return join(spoolDir, 'spool', `worker-${place}`);
}

/** Where workers left something that are not started any more, because there are fewer now. */
async function abandoned(spoolDir: string, workers: number): Promise<string[]> {
  const names = await readdir(join(spoolDir, 'spool')).catch(() => []);
  return names.flatMap((name) => {
    const [, place] = /^worker-(\d+)$/.exec(name) ?? [];
    return place !== undefined && Number(place) >= workers ? [placeIn(spoolDir, Number(place))] : [];
  });
}

function observe(registry: Registry, events: Events): void {
  const registers = [registry];
  new Gauge({ registers, name: 'gateway_event_batches_waiting', help: 'Batches of events the database has not taken', collect() { this.set(events.backlog.batches); } });
  new Gauge({ registers, name: 'gateway_event_bytes_waiting', help: 'Their bytes', collect() { this.set(events.backlog.bytes); } });
}

import type { Config } from './config';
import { systemClock, type Clock } from './core/clock';
import { Cursors } from './core/cursor';
import { createLog, type Log } from './core/log';
import { Secrets } from './core/secrets';
import { openDatabase, type Database } from './db/client';
import type { RouteDeps } from './http/routes';
import { trustedProxies } from './http/client-address';
import { createLimiter } from './http/rate-limit';
import { checkApiKey, createEngine, readSession, recordDenial, type Engine } from './identity/service';
import { createDispatcher, type Dispatcher } from './operations/dispatcher';
import { openTemporal, type Temporal } from './temporal/connection';

/** What every process has. */
export interface CoreDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly db: Database;
  readonly secrets: Secrets;
  readonly cursors: Cursors;
}

export function openCore(config: Config, process: string): CoreDeps {
  const log = createLog(process, config.LOG_LEVEL);
  return {
    config, log,
    clock: systemClock,
    db: openDatabase({ url: config.DATABASE_URL, max: config.DATABASE_POOL_MAX, process, log }),
    secrets: new Secrets(config.HOLDFAST_MASTER_KEY),
    cursors: new Cursors(config.AUTH_SECRET),
  };
}

/** What operations, the frame and the products' services need in the API process. */
export interface AppDeps extends CoreDeps, RouteDeps {
  readonly engine: Engine;
  readonly temporal: Temporal;
  readonly dispatcher: Dispatcher;
}

export function openApi(core: CoreDeps): AppDeps {
  const { config, db, log } = core;
  const engine = createEngine(db, config);
  const temporal = openTemporal({ address: config.TEMPORAL_ADDRESS, namespace: config.TEMPORAL_NAMESPACE, identity: `api@${config.HOLDFAST_INSTALLATION}` });
  const sessions = { db, engine, config };
  return {
    ...core, engine, temporal,
    dispatcher: createDispatcher({ database: db, temporal, log }),
    limiter: createLimiter(db),
    managementRate: { name: 'management', limit: config.RATE_MANAGEMENT_PER_5_MINUTES, periodSeconds: 300 },
    trustedProxies: trustedProxies(config.TRUSTED_PROXIES),
    authenticator: {
      readSession: (cookie, slugs) => readSession(sessions, cookie, slugs),
      checkApiKey: (authorization) => checkApiKey({ db }, authorization),
    },
    recordDenial: (denial) => recordDenial(db, { ...denial, target: null }),
  };
}

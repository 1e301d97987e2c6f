import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureCatalogue } from '../../src/billing/catalogue';
import { createLog } from '../../src/core/log';
import { openApi, openCore, type AppDeps } from '../../src/deps';
import { documentation } from '../../src/http/docs';
import { routes } from '../../src/http/routes';
import { createApp } from '../../src/http/server';
import { withDatabase } from './database';
import { send, serveApp, type Answer, type Ask } from './http';
import { testConfig } from './postgres-api';
import { createTenant, type Tenant } from './tenant';

export interface Api {
  ask(method: string, path: string, ask?: Ask): Promise<Answer>;
  readonly deps: AppDeps;
  readonly tenant: Tenant;
  /** Another organisation, whose members the tenant does not know. */
  readonly foreign: Tenant;
  /** Everything the process has logged, one JSON text a line. */
  readonly logLines: string[];
}

/** The API as its process composes it, with every route, on a database of its own. Temporal does not answer: accepted work waits. `env`: also what is known only then. */
export function withApi(env: Record<string, string> | ((databaseUrl: string) => Record<string, string> | Promise<Record<string, string>>) = {}): Api {
  const test = withDatabase();
  const logLines: string[] = [];
  let made: { deps: AppDeps; served: Awaited<ReturnType<typeof serveApp>>; tenant: Tenant; foreign: Tenant } | undefined;
  const current = () => {
    if (!made) throw new Error('The API exists from beforeAll on.');
    return made;
  };
  beforeAll(async () => {
    const config = testConfig(test.url, { LOG_LEVEL: 'debug', PG_DATA_DIR: join(tmpdir(), 'holdfast-test-none'), ...(typeof env === 'function' ? await env(test.url) : env) });
    const core = { ...openCore({ ...config, LOG_LEVEL: 'fatal' }, 'test'), log: createLog('api', 'debug', { write: (line) => void logLines.push(line) }) };
    const deps = openApi(core);
    await ensureCatalogue(core.db, config);
    const tenants = { tenant: await createTenant(core.db, config.AUTH_SECRET), foreign: await createTenant(core.db, config.AUTH_SECRET) };
    made = { deps, ...tenants, served: await serveApp(createApp(deps, routes, documentation(routes))) };
  });
  afterAll(async () => {
    if (!made) return;
    await made.served.stop();
    await made.deps.dispatcher.drain();
    await made.deps.policyEvaluator.close();
    await made.deps.temporal.close();
    await made.deps.listener.close();
    await made.deps.db.close();
  });
  return {
    ask: (method, path, ask) => send(current().served.port, method, path, ask),
    logLines,
    get deps() { return current().deps; },
    get tenant() { return current().tenant; },
    get foreign() { return current().foreign; },
  };
}

import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { operationSchema, type OperationView } from '../../src/operations/view';
import type { Role } from '../../src/core/caller';
import { openDatabase, type Database } from '../../src/db/client';
import { acceptedAnswer, credentialsAnswer } from '../../src/postgres/schemas';
import { openInstallation } from '../../src/dev/installation';
import { Clone, type DevFile } from './clone';
import { createTenant, type Tenant } from './tenant';

export type ProductAnswer = { status: number; body: Record<string, unknown> };

/** Everything Holdfast is, as `npm start` runs it, with a tenant of its own; connections to the API are kept alive. */
export class Product {
  private readonly agent = new Agent({ keepAlive: true });

  private constructor(private readonly parts: { clone: Clone; file: DevFile; database: Database; authSecret: string; url: string }, readonly tenant: Tenant) {}

  get clone(): Clone { return this.parts.clone; }
  get file(): DevFile { return this.parts.file; }
  get database(): Database { return this.parts.database; }

  static async start(env: Record<string, string> = {}): Promise<Product> {
    const clone = await Clone.make(env);
    try {
      const file = await clone.ready();
      const secret = (name: string) => readFile(join(clone.dir, 'secrets', name), 'utf8').then((text) => text.trim());
      const url = `postgresql://holdfast:${encodeURIComponent(await secret('databasePassword'))}@127.0.0.1:${clone.settings['DATABASE_PORT']}/holdfast`;
      const database = openDatabase({ url, max: 5, process: 'test', log: pino({ level: 'silent' }) });
      const authSecret = await secret('authSecret');
      return new Product({ clone, file, database, authSecret, url }, await createTenant(database, authSecret));
    } catch (error) {
      await clone.remove();
      throw error;
    }
  }

  /** Another organisation with its own counts. */
  newTenant(): Promise<Tenant> {
    return createTenant(this.database, this.parts.authSecret);
  }

  /** What its supervisor gives its processes, for one of the test's own. */
  async environment(): Promise<Record<string, string>> {
    const { id, openDir, secrets } = await openInstallation(this.clone.dir);
    return {
      ...this.clone.settings, PATH: process.env['PATH'] ?? '', HOLDFAST_DATA_DIR: this.clone.dir, HOLDFAST_INSTALLATION: id, HOLDFAST_MASTER_KEY: secrets.masterKey,
      AUTH_SECRET: secrets.authSecret, DATABASE_URL: this.parts.url, TEMPORAL_ADDRESS: `127.0.0.1:${this.clone.settings['TEMPORAL_PORT']}`, PG_DATA_DIR: join(openDir, 'postgres'),
    };
  }

  async stop(): Promise<void> {
    this.agent.destroy();
    await this.database.close();
    await this.clone.remove();
  }

  /** A request below the project's prefix. */
  ask(method: string, path: string, { as = 'owner', body, tenant = this.tenant }: { as?: Role; body?: unknown; tenant?: Tenant } = {}): Promise<ProductAnswer> {
    const url = `${this.file.apiUrl}/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}${path}`;
    const text = body === undefined ? '' : JSON.stringify(body);
    const headers = { cookie: tenant.cookies[as], ...(text ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) } : {}) };
    return new Promise((done, fail) => {
      const sent = request(url, { method, headers, agent: this.agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', fail).on('end', () => {
          const answer: unknown = JSON.parse(Buffer.concat(chunks).toString());
          done({ status: response.statusCode ?? 0, body: typeof answer === 'object' && answer !== null ? { ...answer } : {} });
        });
      });
      sent.on('error', fail).end(text);
    });
  }

  /** A service is accepted. Errors: it is not. */
  async accept(plan = 'starter', tenant?: Tenant): Promise<{ serviceId: string; operationId: string }> {
    const answer = await this.ask('POST', '/postgres/services', { body: { displayName: 'orders', plan }, ...(tenant ? { tenant } : {}) });
    if (answer.status !== 202) throw new Error(`not accepted: ${JSON.stringify(answer.body)}`);
    const { serviceId, operation } = acceptedAnswer.parse(answer.body);
    return { serviceId, operationId: operation.id };
  }

  /** Follows an operation to its end, by long polls. */
  async finished(operationId: string, tenant?: Tenant): Promise<OperationView> {
    for (let polls = 0; polls < 6; polls++) {
      const { body } = await this.ask('GET', `/operations/${operationId}?wait=30`, tenant ? { tenant } : {});
      const operation = operationSchema.parse(body['operation']);
      if (operation.finishedAt !== null) return operation;
    }
    throw new Error(`Operation ${operationId} did not end:\n${this.clone.output}`);
  }

  async reveal(serviceId: string, tenant?: Tenant): Promise<{ connectionString: string; password: string; user: string }> {
    const answer = await this.ask('GET', `/postgres/services/${serviceId}/credentials?reveal=true`, tenant ? { tenant } : {});
    if (answer.status !== 200) throw new Error(`not revealed: ${JSON.stringify(answer.body)}`);
    const { connectionString, credentials } = credentialsAnswer.parse(answer.body);
    return { connectionString: connectionString ?? '', password: credentials.password, user: credentials.user };
  }
}

/** Logged in with the string as it is: TLS, verified in full. */
export async function connectWith(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 10_000 });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

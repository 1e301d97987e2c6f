import { readFileSync } from 'node:fs';
import type { Secrets } from '../core/secrets';
import type { Database } from '../db/client';
import { inTransaction } from '../db/transaction';
import { hostsFile, type RegisteredServer } from './schemas/hosts-file';
import { drainAllBut, findServer, registerServer } from './store/hosts';
import type { Trust } from './view';

type Deps = { readonly db: Database; readonly secrets: Secrets };
export type ServerEntry = RegisteredServer & { caCertificate: string | null };

/** What PG_HOSTS_FILE says. Errors: one sentence, without the file's content, which holds passwords. */
export function readHostsFile(path: string): ServerEntry[] {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(`PG_HOSTS_FILE cannot be read as JSON (${error instanceof SyntaxError ? 'syntax error' : String(error)}).`);
  }
  const read = hostsFile.safeParse(json);
  if (!read.success) throw new Error(`PG_HOSTS_FILE is not right: ${read.error.issues.map(({ path: at, message }) => `${at.join('.')}: ${message}`).join('; ')}.`);
  return read.data.map((server) => ({ ...server, caCertificate: server.caFile ? readFileSync(server.caFile, 'utf8') : null }));
}

/** Each server takes services from now on; registered ones that are not named any more drain. Errors: a name that an instance host has. */
export async function registerServers({ db, secrets }: Deps, servers: readonly ServerEntry[]): Promise<void> {
  await inTransaction(db, async (tx) => {
    for (const server of servers) {
      if (!await registerServer(tx, { ...server, dsnSealed: secrets.seal(server.dsn, dsnAad(server.name)) })) throw new Error(`The host ${server.name} of PG_HOSTS_FILE is an instance host already.`);
    }
    await drainAllBut(tx, servers.map(({ name }) => name));
  });
}

/** A registered server as its adapter needs it, also one that drains; null for any other host. */
export async function openServer({ db, secrets }: Deps, name: string) {
  const found = await findServer(db.prisma, name);
  return found && { ...found, name, dsn: secrets.open(found.dsnSealed, dsnAad(name)) };
}

/** How customers of a registered server check whom they talk to. */
export async function trustOfServer(db: Database, name: string): Promise<Trust | null> {
  const found = await findServer(db.prisma, name);
  return found && { sslmode: found.sslmode, caCertificate: found.caCertificate, rootCertPath: null };
}

function dsnAad(name: string): string {
  return `${name}|dsn`;
}

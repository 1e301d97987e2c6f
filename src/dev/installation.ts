import { randomBytes, randomInt } from 'node:crypto';
import { chmod, link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { openToEveryone } from '../db/postgres-binaries';

/** Each is a file of its own, so a later part adds one without touching what is there. */
const makers = {
  masterKey: () => randomBytes(32).toString('base64'),
  authSecret: () => randomBytes(32).toString('base64url'),
  verpSecret: () => randomBytes(32).toString('base64url'),
  databasePassword: () => randomBytes(24).toString('base64url'),
} as const;

export interface Installation {
  /** Eight characters that tell this clone from others on the machine. */
  readonly id: string;
  /** `.holdfast`, absolute. */
  readonly dir: string;
  /** Where PostgreSQL's users must be able to go: `.holdfast`, or as root, when it lies in a closed folder, /var/lib/holdfast/<id>. */
  readonly openDir: string;
  readonly secrets: { readonly [Name in keyof typeof makers]: string };
}

/** Makes `.holdfast` with an id and secrets of its own, once; several processes may call it at once and see the same. */
export async function openInstallation(dir: string): Promise<Installation> {
  const root = userInfo().uid === 0;
  const path = resolve(dir);
  await mkdir(path, { recursive: true, mode: 0o700 });
  // As root the databases run as other users: they may pass through the folder, not read it. Every file in it is 0600.
  await chmod(path, root ? 0o711 : 0o700);
  const id = await keep(join(path, 'installation'), newId);
  const secretsDir = join(path, 'secrets');
  await mkdir(secretsDir, { recursive: true, mode: 0o700 });
  const secret = (name: keyof typeof makers) => keep(join(secretsDir, name), makers[name]);
  const secrets = {
    masterKey: await secret('masterKey'),
    authSecret: await secret('authSecret'),
    verpSecret: await secret('verpSecret'),
    databasePassword: await secret('databasePassword'),
  };
  const openDir = !root || (await openToEveryone(path)) ? path : join('/var/lib/holdfast', id);
  if (openDir !== path) await mkdir(openDir, { recursive: true, mode: 0o711 });
  return { id, dir: path, openDir, secrets };
}

const demoShape = z.object({ email: z.string(), password: z.string() });

/**
 * The login of the demo owner, as it was when the owner was made: the account is made once, so what is wanted later changes
 * nothing. Delete `.holdfast` to begin anew.
 */
export async function keepDemo(dir: string, wanted: { email: string; password: string | undefined }): Promise<{ email: string; password: string }> {
  const made = () => JSON.stringify({ email: wanted.email, password: wanted.password ?? randomBytes(12).toString('base64url') });
  return demoShape.parse(JSON.parse(await keep(join(dir, 'demo.json'), made)));
}

/** The content of a file that is written once (0600) and then stays: whoever links first decides. */
async function keep(file: string, make: () => string): Promise<string> {
  const draft = `${file}.${process.pid}`;
  const existing = (await readFile(file, 'utf8').catch(() => '')).trim();
  if (existing !== '') return existing;
  await rm(file, { force: true });
  await writeFile(draft, make(), { mode: 0o600, flush: true });
  await link(draft, file).catch(() => undefined);
  await rm(draft, { force: true });
  return (await readFile(file, 'utf8')).trim();
}

function newId(): string {
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
  return Array.from({ length: 8 }, () => letters[randomInt(letters.length)]).join('');
}

import { createAuthority, type KeyedCertificate } from '../core/certificates';
import type { Secrets } from '../core/secrets';
import { rows, type Db } from './client';

const name = 'certificate-authority';

/**
 * The installation's one certificate authority, made by whoever asks first: of two who make one at once, the first to write
 * wins and both answer hers. Its key is sealed. Errors: a master key that does not open it.
 */
export async function ensureInstallationCa(db: Db, secrets: Secrets): Promise<KeyedCertificate> {
  const found = await find(db);
  if (found) return { certificate: found.certificate, key: secrets.open(found.sealed, name) };
  const made = createAuthority('Holdfast installation CA');
  await rows(db, 'insert into installation_secret (name, sealed, certificate) values ($1, $2, $3) on conflict (name) do nothing returning name',
    name, secrets.seal(made.key, name), made.certificate);
  return ensureInstallationCa(db, secrets);
}

/** The authority's certificate alone, for clients; null until somebody needed the authority. */
export async function findInstallationCaCertificate(db: Db): Promise<string | null> {
  return (await find(db))?.certificate ?? null;
}

async function find(db: Db): Promise<{ sealed: string; certificate: string } | null> {
  const [row] = await rows<{ sealed: string; certificate: string }>(db, 'select sealed, certificate from installation_secret where name = $1', name);
  return row ?? null;
}

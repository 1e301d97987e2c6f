import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';

export type CredentialState = 'pending' | 'current' | 'previous' | 'destroyed';
export type CredentialRow = {
  serviceId: string; version: number; state: CredentialState; login: string; secretSealed: string | null; verifierSealed: string | null;
  validUntil: Date | null; inSync: boolean | null; createdAt: Date; updatedAt: Date; rotatedAt: Date | null;
};

const columns = `service_id as "serviceId", version, state, login, secret_sealed as "secretSealed", verifier_sealed as "verifierSealed",
  valid_until as "validUntil", in_sync as "inSync", created_at as "createdAt", updated_at as "updatedAt", rotated_at as "rotatedAt"`;

/** The newest credential, whatever became of it, and the one it overlaps with. */
export async function findCredentials(db: Db, serviceId: string): Promise<{ latest: CredentialRow; previous: CredentialRow | null } | null> {
  const found = await rows<CredentialRow>(db, `select ${columns} from postgres_credential where service_id = $1 order by version desc limit 2`, serviceId);
  const [latest, older] = found;
  return latest ? { latest, previous: older?.state === 'previous' ? older : null } : null;
}

/**
 * Stores the secret of a credential that has none, and answers the row as it then is: of two at once the first wins and
 * both go on with the same secret. Null when there is no credential to give, because it was destroyed.
 */
export async function storeSecret(
  tx: Tx, credential: { serviceId: string; version: number; secretSealed: string; verifierSealed: string },
): Promise<CredentialRow | null> {
  await execute(tx, `update postgres_credential set state = 'current', secret_sealed = $3, verifier_sealed = $4, updated_at = now()
    where service_id = $1 and version = $2::int and state = 'pending'`,
  credential.serviceId, credential.version, credential.secretSealed, credential.verifierSealed);
  const [row] = await rows<CredentialRow>(tx, `select ${columns} from postgres_credential where service_id = $1 and version = $2::int and state = 'current'`,
    credential.serviceId, credential.version);
  return row ?? null;
}

/** Nothing that opens the service is left in our database. Safe twice. */
export async function destroyCredentials(db: Db, serviceId: string): Promise<void> {
  await execute(db, `update postgres_credential set state = 'destroyed', secret_sealed = null, verifier_sealed = null, in_sync = null, updated_at = now()
    where service_id = $1 and state <> 'destroyed'`, serviceId);
}

/** Place where a secret lives, bound into its seal (contract postgres.md §4.3). */
export function secretAad(credential: { serviceId: string; login: string; version: number }): string {
  return `${credential.serviceId}|${credential.login}|${credential.version}`;
}

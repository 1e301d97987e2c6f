import { execute, rows, type Db } from '../../db/client';
import type { Run } from './runs';

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
 * Stores the secret of a credential that has none, while the run owns its service (the row is locked: a DELETE comes before
 * or after). Null when it lost: the service has a newer intent, or of two at once the other was first.
 */
export async function storeSecret(
  db: Db, run: Run, credential: { version: number; secretSealed: string; verifierSealed: string },
): Promise<CredentialRow | null> {
  const [row] = await rows<CredentialRow>(db, `
    with run as (select id from postgres_service where id = $1 and generation = $2::int and status = 'provisioning' for update)
    update postgres_credential set state = 'current', secret_sealed = $4, verifier_sealed = $5, updated_at = now()
    from run where service_id = run.id and version = $3::int and state = 'pending' returning ${columns}`,
  run.serviceId, run.generation, credential.version, credential.secretSealed, credential.verifierSealed);
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

import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { Run } from './runs';

export type CredentialState = 'pending' | 'current' | 'previous' | 'destroyed';
export type CredentialRow = {
  serviceId: string; version: number; state: CredentialState; login: string; secretSealed: string | null; verifierSealed: string | null;
  validUntil: Date | null; inSync: boolean | null; createdAt: Date; updatedAt: Date; rotatedAt: Date | null;
  /** Of a rotation that waits: how long the former password goes on, once it is known until when, and whether sessions are ended. */
  overlapSeconds: number | null; overlapUntil: Date | null; endSessions: boolean;
};

/** `shown`: the one in force, else the newest. `pending`: decided, not yet in force. `previous`: good beside `shown` until its time. */
export type Credentials = { shown: CredentialRow; pending: CredentialRow | null; previous: CredentialRow | null };

const columns = `c.service_id as "serviceId", c.version, c.state, c.login, c.secret_sealed as "secretSealed", c.verifier_sealed as "verifierSealed",
  c.valid_until as "validUntil", c.in_sync as "inSync", c.created_at as "createdAt", c.updated_at as "updatedAt", c.rotated_at as "rotatedAt",
  c.overlap_seconds as "overlapSeconds", c.overlap_until as "overlapUntil", c.end_sessions as "endSessions"`;

/** The credentials of a service that are not replaced yet; of a deleted one, what its newest was. Null when there is no service. */
export async function findCredentials(db: Db, serviceId: string): Promise<Credentials | null> {
  const found = await rows<CredentialRow>(db, `select ${columns} from postgres_credential c where service_id = $1
    order by case state when 'current' then 0 when 'pending' then 1 when 'previous' then 2 else 3 end, version desc limit 3`, serviceId);
  const [shown] = found;
  const of = (state: CredentialState) => found.find((row) => row.state === state) ?? null;
  return shown ? { shown, pending: of('pending'), previous: of('previous') } : null;
}

/** A credential of the next version, without a secret. */
export async function insertPending(
  tx: Tx, serviceId: string, credential: { login: string; overlapSeconds: number | null; endSessions: boolean },
): Promise<void> {
  await execute(tx, `insert into postgres_credential (service_id, version, login, overlap_seconds, end_sessions)
    select $1, max(version) + 1, $2, $3::int, $4::boolean from postgres_credential where service_id = $1`,
  serviceId, credential.login, credential.overlapSeconds, credential.endSessions);
}

/**
 * Stores the secret of a credential that has none, while the run owns its service (the row is locked: a DELETE comes before
 * or after). A first password is in force at once, a rotated one with the mark of the rotation. It reaches the disk with that mark at the latest: one that a
 * crash of the database takes back was shown to nobody, and the step makes another. Null when it lost: the service has a newer intent, or of two at once the other was first.
 */
export async function storeSecret(
  db: Db, run: Run, credential: { version: number; secretSealed: string; verifierSealed: string },
): Promise<CredentialRow | null> {
  const [row] = await rows<CredentialRow>(db, `
    with lax as materialized (select set_config('synchronous_commit', 'off', true)),
    run as (select id, status from postgres_service, lax where id = $1 and generation = $2::int and status in ('provisioning', 'updating') for update of postgres_service)
    update postgres_credential c set state = case run.status when 'provisioning' then 'current' else c.state end, secret_sealed = $4, verifier_sealed = $5,
      overlap_until = now() + c.overlap_seconds * interval '1 second', updated_at = now()
    from run where c.service_id = run.id and c.version = $3::int and c.state = 'pending' and c.secret_sealed is null returning ${columns}`,
  run.serviceId, run.generation, credential.version, credential.secretSealed, credential.verifierSealed);
  return row ?? null;
}

/** What was pending is in force. An overlap keeps the former one until its time; without one it is destroyed, and so is one before it. */
export async function promotePending(tx: Tx, serviceId: string): Promise<void> {
  const [pending] = await rows<{ overlapUntil: Date | null }>(tx, `select overlap_until as "overlapUntil" from postgres_credential
    where service_id = $1 and state = 'pending' and secret_sealed is not null for update`, serviceId);
  if (!pending) throw new Error(`${serviceId} has no password to put in force.`);
  await destroyOnes(tx, serviceId, ['previous', ...(pending.overlapUntil ? [] : ['current'])]);
  await execute(tx, `update postgres_credential set state = 'previous', valid_until = $2::timestamptz, updated_at = now()
    where service_id = $1 and state = 'current'`, serviceId, pending.overlapUntil);
  await execute(tx, `update postgres_credential set state = 'current', in_sync = true, checked_at = now(), rotated_at = now(), updated_at = now()
    where service_id = $1 and state = 'pending'`, serviceId);
}

/** Nothing of these is left: no secret, no overlap. */
export async function destroyOnes(tx: Tx, serviceId: string, states: readonly string[]): Promise<void> {
  await execute(tx, `${destruction} where service_id = $1 and state = any($2::text[])`, serviceId, states);
}

/** Nothing that opens the service is left in our database. Safe twice. */
export async function destroyCredentials(db: Db, serviceId: string): Promise<void> {
  await execute(db, `${destruction} where service_id = $1 and state <> 'destroyed'`, serviceId);
}

const destruction = `update postgres_credential set state = 'destroyed', secret_sealed = null, verifier_sealed = null, in_sync = null, updated_at = now()`;

/** Place where a secret lives, bound into its seal (contract postgres.md §4.3). */
export function secretAad(credential: { serviceId: string; login: string; version: number }): string {
  return `${credential.serviceId}|${credential.login}|${credential.version}`;
}

/** Place where a verifier lives, bound into its seal. */
export function verifierAad(serviceId: string, login: string): string {
  return `${serviceId}|${login}|verifier`;
}

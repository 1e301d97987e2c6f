import type { Secrets } from '../../src/core/secrets';
import type { Database } from '../../src/db/client';
import { secretAad } from '../../src/postgres/store/credentials';

/** The service has this password, as if a workflow had made it. */
export async function givePassword({ database, secrets }: { database: Database; secrets: Secrets }, serviceId: string, password: string): Promise<void> {
  const { rows: [{ login, version }] } = await database.pool.query('select login, version from postgres_credential where service_id = $1', [serviceId]);
  const sealed = secrets.seal(password, secretAad({ serviceId, login, version }));
  await database.pool.query(`update postgres_credential set state = 'current', secret_sealed = $2, verifier_sealed = $2 where service_id = $1`, [serviceId, sealed]);
}

const common = `status_before = null, status_reason = null, phase = null, suspended_at = null, deletion_requested_at = null, deleted_at = null, deadline_at = null, access_open = false, change = null, run_seconds = null, deleted_before = null`;
const own: Readonly<Record<string, string>> = {
  provisioning: 'deadline_at = now()',
  available: 'available_at = now(), access_open = true',
  updating: `status_before = 'available', deadline_at = now(), available_at = now(), access_open = true`,
  suspended: `status_reason = 'user', suspended_at = now(), available_at = now()`,
  failed: `status_reason = 'no_capacity'`,
  deleting: 'deletion_requested_at = now(), deadline_at = now()',
  deleted: 'deletion_requested_at = now(), deleted_at = now()',
};

/** The service is in this status, with what the constraints ask of it. */
export async function setStatus(database: Database, serviceId: string, status: string): Promise<void> {
  const mine = own[status] ?? '';
  const columns = new Set([...mine.matchAll(/(\w+) = /g)].map(([, column]) => column));
  const rest = common.split(', ').filter((assignment) => !columns.has(assignment.split(' ')[0] ?? ''));
  await database.pool.query(`update postgres_service set ${[`status = '${status}'`, mine, ...rest].join(', ')} where id = $1`, [serviceId]);
}

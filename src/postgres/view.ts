import { lifetimes } from './retention';
import { planLimits, type Plan } from './rules';
import type { CredentialsView, ServiceView } from './schemas';
import { accessModeOf, revealable, type Status } from './state';
import type { BackupView } from './schemas/backups';
import type { BackupRow } from './store/backups';
import type { CredentialRow } from './store/credentials';
import type { ServiceRow } from './store/services';

export type Address = { host: string | null; port: number | null };
/** How a client checks whom it talks to; `rootCertPath`: a file of this machine, named only where client and gateway share it. */
export type Trust = { sslmode: 'verify-full' | 'require'; caCertificate: string | null; rootCertPath: string | null };

export const mask = '********';

export function viewService(row: ServiceRow, address: Address): ServiceView {
  return {
    id: row.id,
    displayName: row.displayName,
    plan: row.plan,
    status: row.status,
    statusReason: row.statusReason,
    phase: row.phase,
    operationId: row.operationId,
    region: row.region,
    engine: 'postgres',
    version: row.version,
    isolation: row.isolation,
    compute: row.compute,
    accessMode: accessModeOf(row),
    host: address.host,
    port: address.port,
    database: row.database,
    connections: { limit: planLimits[row.plan].connections },
    allowedCidrs: row.allowedCidrs,
    deletionProtection: row.deletionProtection,
    sourceServiceId: row.sourceServiceId,
    storage: { usedBytes: row.usedBytes, limitBytes: planLimits[row.plan].storageBytes, state: row.storageState, measuredAt: at(row.measuredAt) },
    backups: { retentionDays: lifetimes[row.plan].backupDays, ...restoreTimes(row) },
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    availableAt: at(row.availableAt),
    suspendedAt: at(row.suspendedAt),
    deletionRequestedAt: row.status === 'deleting' || row.status === 'deleted' ? at(row.deletionRequestedAt) : null,
    deletedAt: at(row.deletedAt),
    recoverableUntil: at(row.recoverableUntil),
    trialExpiresAt: at(row.trialExpiresAt),
  };
}

export function viewBackup(row: BackupRow): BackupView {
  return {
    id: row.id, serviceId: row.serviceId, kind: row.kind, status: row.status, sizeBytes: row.sizeBytes, createdAt: row.startedAt.toISOString(), updatedAt: row.updatedAt.toISOString(), startedAt: row.startedAt.toISOString(), completedAt: at(row.completedAt),
    expiresAt: at(row.expiresAt), restoreFrom: at(row.restoreFrom), restoreUntil: at(row.restoreUntil), verifiedAt: at(row.verifiedAt),
  };
}

/** Between these times it can be restored; null until a base backup is complete (contract postgres.md §1.1). */
export function restoreTimes({ earliestRestoreAt, archivedUntil }: Pick<ServiceRow, 'earliestRestoreAt' | 'archivedUntil'>): { earliestRestoreTime: string | null; latestRestoreTime: string | null } {
  const latest = earliestRestoreAt && archivedUntil && archivedUntil > earliestRestoreAt ? archivedUntil : earliestRestoreAt;
  return { earliestRestoreTime: at(earliestRestoreAt), latestRestoreTime: at(latest) };
}

export type CredentialsFacts = {
  service: Pick<ServiceRow, 'id' | 'status' | 'database'>;
  credential: CredentialRow;
  previous: CredentialRow | null;
  address: Address;
  trust: Trust;
  /** Null: masked. */
  password: string | null;
};

/** One shape, masked or not: only the three places of the password differ, so clients still parse what is masked. */
export function viewCredentials(facts: CredentialsFacts): { connectionString: string | null; credentials: CredentialsView } {
  const { service, credential, previous, address, trust } = facts;
  const password = facts.password ?? mask;
  return {
    connectionString: connectionString(facts, password),
    credentials: {
      serviceId: service.id,
      version: credential.version,
      revealed: facts.password !== null,
      ready: isReady(service.status),
      host: address.host,
      port: address.port,
      database: service.database,
      user: credential.login,
      password,
      sslmode: trust.sslmode,
      caCertificate: trust.caCertificate,
      jdbcUrl: jdbcUrl(facts, password),
      previous: previous ? { version: previous.version, user: previous.login, validUntil: at(previous.validUntil) } : null,
      inSync: credential.inSync,
      createdAt: credential.createdAt.toISOString(),
      updatedAt: credential.updatedAt.toISOString(),
      rotatedAt: at(credential.rotatedAt),
    },
  };
}

/** Limits of a plan as GET options shows them. */
export function viewLimits(plan: Plan) {
  const { plan: _, ...limits } = planLimits[plan];
  const { backupDays, undeleteHours, trialDays } = lifetimes[plan];
  return { ...limits, backupRetentionDays: backupDays, undeleteHours, trialDays };
}

function isReady(status: Status): boolean {
  const ready: readonly Status[] = revealable;
  return ready.includes(status);
}

/** Passwords are base64url and the mask is asterisks: neither needs an escape in a URI. */
function connectionString({ service, credential, address, trust }: CredentialsFacts, password: string): string | null {
  if (address.host === null) return null;
  const root = trust.rootCertPath === null ? '' : `&sslrootcert=${encodeURIComponent(trust.rootCertPath).replaceAll('%2F', '/')}`;
  return `postgresql://${credential.login}:${password}@${address.host}:${address.port}/${service.database}?sslmode=${trust.sslmode}${root}`;
}

function jdbcUrl({ service, credential, address, trust }: CredentialsFacts, password: string): string | null {
  if (address.host === null) return null;
  return `jdbc:postgresql://${address.host}:${address.port}/${service.database}?user=${credential.login}&password=${password}&sslmode=${trust.sslmode}`;
}

function at(time: Date | null): string | null {
  return time?.toISOString() ?? null;
}

/** Statuses of a Postgres service and how they follow each other (contract postgres.md §2). Pure; workflows import it. */
export const statuses = ['provisioning', 'available', 'updating', 'suspended', 'failed', 'deleting', 'deleted'] as const;
export type Status = (typeof statuses)[number];

export const statusReasons = [
  'trial_expired', 'payment_overdue', 'user', 'admin', 'no_capacity', 'backend_error', 'verification_failed', 'deadline_exceeded',
] as const;
export type StatusReason = (typeof statusReasons)[number];

export const phases = ['placing', 'initializing', 'restoring', 'starting', 'configuring', 'verifying'] as const;
export type Phase = (typeof phases)[number];

export const storageStates = ['ok', 'warning', 'read_only', 'restricted'] as const;
export type StorageState = (typeof storageStates)[number];

/** What each status may become. Deleting is reachable from every living status, so deletion never depends on anything else. */
export const transitions = {
  provisioning: ['available', 'failed', 'deleting'],
  available: ['updating', 'deleting'],
  updating: ['available', 'suspended', 'deleting'],
  suspended: ['updating', 'deleting'],
  failed: ['provisioning', 'deleting'],
  deleting: ['deleted'],
  deleted: ['provisioning'],
} as const satisfies Record<Status, readonly Status[]>;

export function mayBecome(from: Status, to: Status): boolean {
  const next: readonly Status[] = transitions[from];
  return next.includes(to);
}

/** Statuses from which `to` may be reached: the right-hand side of a compare-and-set. */
export function before(to: Status): Status[] {
  return statuses.filter((from) => mayBecome(from, to));
}

/** Statuses a workflow is at work in; each has a deadline on its row. */
export const transitional = ['provisioning', 'updating', 'deleting'] as const satisfies readonly Status[];

/** Statuses in which a password may be shown (contract §4.3). */
export const revealable = ['available', 'updating', 'suspended'] as const satisfies readonly Status[];

/** Statuses that count against the plan's number of services: the counter is given back on failed and on DELETE. */
export const counted = ['provisioning', 'available', 'updating', 'suspended'] as const satisfies readonly Status[];

/** What an updating service is changed in. */
export const changes = ['rotate', 'plan', 'suspend', 'resume'] as const;
export type Change = (typeof changes)[number];

/** From which statuses a change may be accepted, what its operation is called and how long its run may take (contract §2). */
export const changeRules = {
  rotate: { from: ['available'], kind: 'postgres.rotate_credentials', seconds: 120 },
  plan: { from: ['available', 'suspended'], kind: 'postgres.change_plan', seconds: 600 },
  suspend: { from: ['available'], kind: 'postgres.suspend', seconds: 120 },
  resume: { from: ['suspended'], kind: 'postgres.resume', seconds: 120 },
} as const satisfies Record<Change, { from: readonly Status[]; kind: string; seconds: number }>;

/** Operation kinds that hold a service; a backup runs beside them. */
export const holdingKinds = [
  'postgres.provision', 'postgres.delete', 'postgres.rotate_credentials', 'postgres.change_plan', 'postgres.suspend', 'postgres.resume',
  'postgres.restore', 'postgres.undelete',
] as const;

export const backupKinds = ['scheduled', 'manual', 'final'] as const;
export type BackupKind = (typeof backupKinds)[number];
export const backupStatuses = ['running', 'complete', 'failed', 'expired'] as const;
export type BackupStatus = (typeof backupStatuses)[number];

/** Steps of the workflows, in order; they are also the steps of the operation (contract §5.2). */
export const steps = {
  provisionPostgres: ['ensurePlacement', 'ensureInstance', 'ensureAccess', 'verifyAccess', 'markAvailable'],
  changePostgres: {
    rotate: ['ensureAccess', 'markChanged'],
    plan: ['applyLimits', 'markChanged'],
    suspend: ['blockAccess', 'stopInstance', 'markChanged'],
    resume: ['ensureInstance', 'unblockAccess', 'verifyAccess', 'markChanged'],
  },
  restorePostgres: ['ensurePlacement', 'restoreInstance', 'ensureAccess', 'verifyAccess', 'markAvailable'],
  backupPostgres: ['ensureBackup', 'markBackupComplete'],
  undeletePostgres: ['reviveInstance', 'ensureAccess', 'verifyAccess', 'markAvailable'],
  deletePostgres: ['blockAccess', 'cancelOtherRuns', 'retainInstance', 'destroyInstance', 'destroyCredentials', 'markDeleted'],
} as const;

/** Codes a failed provisioning leaves as its reason; whatever else went wrong is the backend's. */
export function failureReason(code: string): 'no_capacity' | 'backend_error' | 'verification_failed' | 'deadline_exceeded' {
  switch (code) {
    case 'no_capacity':
    case 'verification_failed':
    case 'deadline_exceeded': return code;
    default: return 'backend_error';
  }
}

/** Mode in force, derived (contract §4.5): blocked until access has been given, else what storage allows. */
export function accessModeOf(service: { accessOpen: boolean; storageState: StorageState }): 'full' | 'read_only' | 'restricted' | 'blocked' {
  if (!service.accessOpen) return 'blocked';
  return service.storageState === 'read_only' || service.storageState === 'restricted' ? service.storageState : 'full';
}

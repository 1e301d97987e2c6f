import type { AnyActivity } from '../support/workflow-lab';
import { ApplicationFailure } from '@temporalio/common';

/** A run to be recorded: how a released workflow has gone, or may have gone, in production. */
export type Recording = { workflow: string; variant: string; input?: unknown; activities: Readonly<Record<string, AnyActivity>> };

const done = async () => undefined;
const refused = async () => {
  throw ApplicationFailure.nonRetryable('There is no room.', 'no_capacity');
};
const superseded = async () => {
  throw ApplicationFailure.nonRetryable('A newer intent owns the resource.', 'superseded');
};
const postgresRun = { serviceId: 'pg_01kahq3v7ye5fr2m8d4xw0zt6c', operationId: 'op_01kahq3v7ye5fr2m8d4xw0zt6d', generation: 1 };
const provision = {
  provisionFromPool: async () => 'cold', ensurePlacement: done, ensureInstance: done, ensureAccess: done, verifyAccess: done, markAvailable: done,
  destroyCredentials: done, destroyInstance: done, releasePlacement: done, markProvisionFailed: done, reportFailedUndo: done,
};
const deletion = { blockAccess: async () => ({ retain: true }), cancelOtherRuns: done, retainInstance: done, destroyInstance: done, destroyCredentials: done, markDeleted: done };

const change = {
  ensureAccess: done, applyLimits: done, blockAccess: async () => ({ retain: false }), stopInstance: done, ensureInstance: done, unblockAccess: done, verifyAccess: done,
  markChanged: done, revertAccess: done, revertLimits: done, revertMode: done, markChangeFailed: done,
};
const revival = { reviveInstance: done, ensureAccess: done, verifyAccess: done, markAvailable: done, retainInstance: done, destroyCredentials: done, markUndeleteFailed: done };

const taken = { sizeBytes: 33_554_432, from: '2026-11-21T10:06:00.000Z', systemId: '7500000000000000001' };
const backup = { ensureBackup: async () => taken, markBackupComplete: done, dropBackup: done, markBackupFailed: done };
const backupRun = { ...postgresRun, backupId: 'bak_01kahq3v7ye5fr2m8d4xw0zt6e' };
const refill = {
  ensurePlacement: done, restoreInstance: done, ensureAccess: done, verifyAccess: done, markAvailable: done, destroyCredentials: done, destroyInstance: done, releasePlacement: done,
  markProvisionFailed: done,
};

const projectRun = { projectId: 'prj_01kahq3v7ye5fr2m8d4xw0zt6c', operationId: postgresRun.operationId };
const orgRun = { orgId: 'org_01kahq3v7ye5fr2m8d4xw0zt6c', operationId: postgresRun.operationId };
const mailRun = { mailId: 'msg_01kahq3v7ye5fr2m8d4xw0zt6c' };
const mail = { deliverAccountMail: done, markAccountMailSent: done, markAccountMailFailed: done };
const projectDeletion = { requestProductDeletions: done, awaitProductsGone: done, markProjectDeleted: done };
const orgDeletion = { requestProjectDeletions: done, awaitProjectsGone: done, closeOrganizationBilling: done, recordBillingFailure: done, markOrganizationDeleted: done };

const zoneRun = { zoneId: 'zone_01kahq3v7ye5fr2m8d4xw0zt6c', operationId: postgresRun.operationId };
const domainRun = { domainId: 'dom_01kahq3v7ye5fr2m8d4xw0zt6c', operationId: postgresRun.operationId };
const mailServiceRun = { mailServiceId: 'mls_01kahq3v7ye5fr2m8d4xw0zt6c', operationId: postgresRun.operationId };
const messageRun = { messageId: 'msg_01kahq3v7ye5fr2m8d4xw0zt6c' };
const batchRun = { messageIds: ['msg_01kahq3v7ye5fr2m8d4xw0zt6d', 'msg_01kahq3v7ye5fr2m8d4xw0zt6e'] };
const certificateRun = { certificateId: 'crt_01kahq3v7ye5fr2m8d4xw0zt6c', generation: 1, operationId: postgresRun.operationId };
const certificate = { loadCertificateOrder: async () => ({ served: true }), markIssuing: done, checkCaa: done, obtainCertificate: done, markValid: done, removeChallenge: done, markFailed: done, markRetired: done, reportFailedUndo: done };
/** Answers with each value in turn, then the last again. */
const inTurn = (...values: unknown[]) => async () => (values.length > 1 ? values.shift() : values[0]);

/**
 * Every exported workflow stands here, with each way its code can branch. `npm run histories:record` adds what has no file
 * in histories/ yet and never touches what has: those are promises to runs that are under way.
 */
export const recordings: readonly Recording[] = [
  { workflow: 'reconcile', variant: 'restarted-one', activities: { restartStuckWork: async () => ({ restarted: 1, overdue: 0 }), dropExpiredRows: done } },
  { workflow: 'advancePostgresLifecycle', variant: 'purged-one', activities: { purgeExpiredServices: async () => ({ purged: 1, left: 0 }) } },
  { workflow: 'advancePostgresLifecycle', variant: 'complete', activities: {
    attendOverdueServices: async () => ({ restarted: 1, overdue: 1 }), advanceTrials: async () => ({ noticed: 1, suspended: 0, deleted: 0 }), endOverlaps: async () => ({ ended: 1 }),
    purgeExpiredServices: async () => ({ purged: 1, left: 0 }),
  } },
  { workflow: 'observePostgres', variant: 'seen', activities: { observeServices: async () => ({ seen: 2, silent: 1 }) } },
  { workflow: 'provisionPostgres', variant: 'from-pool', input: postgresRun, activities: { ...provision, provisionFromPool: async () => 'available' } },
  { workflow: 'provisionPostgres', variant: 'cold', input: postgresRun, activities: provision },
  { workflow: 'provisionPostgres', variant: 'undone', input: postgresRun, activities: { ...provision, ensureAccess: refused } },
  { workflow: 'provisionPostgres', variant: 'undo-refused', input: postgresRun, activities: { ...provision, ensurePlacement: refused, destroyInstance: refused } },
  { workflow: 'provisionPostgres', variant: 'superseded', input: postgresRun, activities: { ...provision, ensureInstance: superseded } },
  { workflow: 'changePostgres', variant: 'rotated', input: { ...postgresRun, change: 'rotate' }, activities: change },
  { workflow: 'changePostgres', variant: 'plan-applied', input: { ...postgresRun, change: 'plan' }, activities: change },
  { workflow: 'changePostgres', variant: 'suspended', input: { ...postgresRun, change: 'suspend' }, activities: change },
  { workflow: 'changePostgres', variant: 'resumed', input: { ...postgresRun, change: 'resume' }, activities: change },
  { workflow: 'changePostgres', variant: 'plan-undone', input: { ...postgresRun, change: 'plan' }, activities: { ...change, applyLimits: refused } },
  { workflow: 'backupPostgres', variant: 'complete', input: backupRun, activities: backup },
  { workflow: 'backupPostgres', variant: 'undone', input: backupRun, activities: { ...backup, ensureBackup: refused } },
  { workflow: 'keepPostgresBackups', variant: 'kept', activities: { startDueBackups: async () => 2, expireBackups: async () => ({ expired: 1, left: 0 }) } },
  { workflow: 'drillPostgresBackup', variant: 'good', activities: { drillBackup: async () => ({ backupId: backupRun.backupId, verified: true, tables: 70 }) } },
  { workflow: 'reviewPostgresInventory', variant: 'one-stray', activities: { reviewInventory: async () => ({ strays: 1, removed: 0 }) } },
  { workflow: 'restorePostgres', variant: 'refilled', input: { ...postgresRun, source: 'backup', seconds: 604 }, activities: refill },
  { workflow: 'restorePostgres', variant: 'refill-undone', input: { ...postgresRun, source: 'backup', seconds: 604 }, activities: { ...refill, restoreInstance: refused } },
  { workflow: 'restorePostgres', variant: 'revived', input: { ...postgresRun, source: 'retained', seconds: 601 }, activities: revival },
  { workflow: 'restorePostgres', variant: 'retained-again', input: { ...postgresRun, source: 'retained', seconds: 601 }, activities: { ...revival, verifyAccess: refused } },
  { workflow: 'deletePostgres', variant: 'retained', input: { ...postgresRun, generation: 2 }, activities: deletion },
  { workflow: 'deletePostgres', variant: 'destroyed', input: { ...postgresRun, generation: 2 }, activities: { ...deletion, blockAccess: async () => ({ retain: false }) } },
  { workflow: 'sendAccountMail', variant: 'sent', input: mailRun, activities: mail },
  { workflow: 'sendAccountMail', variant: 'given-up', input: mailRun, activities: { ...mail, deliverAccountMail: refused } },
  { workflow: 'deleteProject', variant: 'gone', input: projectRun, activities: projectDeletion },
  { workflow: 'deleteOrganization', variant: 'gone', input: orgRun, activities: orgDeletion },
  { workflow: 'deleteOrganization', variant: 'billing-refused', input: orgRun, activities: { ...orgDeletion, closeOrganizationBilling: refused } },
  { workflow: 'expireIdentity', variant: 'done', activities: { expireIdentityRows: async () => ({ changed: 3 }) } },
  { workflow: 'verifyAudit', variant: 'whole', activities: { verifyAuditChains: async () => ({ broken: 0 }) } },
  { workflow: 'verifyZone', variant: 'until-deleted', input: zoneRun, activities: { ensureZoneChecked: inTurn({ delayMs: 20, status: 'pending' }, { delayMs: 20, status: 'active' }, { delayMs: null, status: null }) } },
  { workflow: 'syncZone', variant: 'published', input: zoneRun, activities: { ensureZonePublished: async () => ({ version: 7 }), markSyncFailed: done } },
  { workflow: 'purgeZone', variant: 'purged', input: zoneRun, activities: { ensureZoneRemoved: done, markZonePurged: done } },
  { workflow: 'purgeZone', variant: 'refused', input: zoneRun, activities: { ensureZoneRemoved: refused, markZonePurged: done } },
  { workflow: 'retainDns', variant: 'done', activities: { purgeDnsHistory: async () => ({ records: 3, changeSets: 2, trimmedZones: 1 }) } },
  { workflow: 'verifyDomain', variant: 'verified', input: domainRun, activities: { ensureDomainChecked: inTurn({ delayMs: 20, status: 'pending' }, { delayMs: null, status: 'verified' }) } },
  { workflow: 'verifyDomain', variant: 'deleted', input: domainRun, activities: { ensureDomainChecked: async () => ({ delayMs: null, status: null }) } },
  { workflow: 'deleteMailService', variant: 'removed', input: mailServiceRun, activities: { cancelServiceMessages: done, removeServiceDomains: done, purgeServiceContent: done, markServiceRemoved: done } },
  { workflow: 'recheckMailDomains', variant: 'checked', activities: { recheckDueDomains: async () => ({ checked: 2 }) } },
  { workflow: 'syncZone', variant: 'given-up', input: zoneRun, activities: { ensureZonePublished: refused, markSyncFailed: done } },
  { workflow: 'checkDrift', variant: 'two-pages', activities: { listDriftedZones: inTurn({ drifted: [zoneRun.zoneId], next: zoneRun.zoneId }, { drifted: [], next: null }), requestZoneSyncs: done } },
  { workflow: 'deliverMessage', variant: 'delivered', input: messageRun, activities: { attemptMessages: async () => [{ messageId: messageRun.messageId, settled: true, nextAttemptAt: null }] } },
  { workflow: 'deliverMessage', variant: 'after-a-deferral', input: messageRun, activities: { attemptMessages: inTurn([{ messageId: messageRun.messageId, settled: false, nextAttemptAt: '2020-01-01T00:00:00.000Z' }], [{ messageId: messageRun.messageId, settled: true, nextAttemptAt: null }]) } },
  { workflow: 'evaluateMailReputation', variant: 'one-warned', activities: { evaluateReputation: async () => ({ warned: 1, suspended: 0 }) } },
  { workflow: 'retainMail', variant: 'purged', activities: { purgeExpiredMail: async () => ({ purged: 3 }) } },
  { workflow: 'deliverBatch', variant: 'one-handed-on', input: batchRun, activities: { attemptMessages: async () => [{ messageId: batchRun.messageIds[0], settled: true, nextAttemptAt: null }, { messageId: batchRun.messageIds[1], settled: false, nextAttemptAt: null }] } },
  { workflow: 'deliverBatch', variant: 'all-handed-on', input: batchRun, activities: { attemptMessages: refused } },
  { workflow: 'collectUsage', variant: 'stored', activities: { collectMailUsage: async () => ({ stored: 2 }) } },
  { workflow: 'refreshSpend', variant: 'refreshed', activities: { refreshCeilings: async () => ({ limited: 1 }) } },
  { workflow: 'ensureCertificate', variant: 'valid', input: certificateRun, activities: certificate },
  { workflow: 'ensureCertificate', variant: 'not-served', input: certificateRun, activities: { ...certificate, loadCertificateOrder: async () => ({ served: false }) } },
  { workflow: 'ensureCertificate', variant: 'refused', input: certificateRun, activities: { ...certificate, obtainCertificate: refused } },
  { workflow: 'ensureCertificate', variant: 'superseded', input: certificateRun, activities: { ...certificate, markIssuing: superseded } },
  { workflow: 'sweepCertificates', variant: 'one-ordered', activities: { listDueCertificates: async () => ({ expired: 0, opened: 1, retired: 1 }) } },
  { workflow: 'maintainGateway', variant: 'dropped', activities: { maintainGatewayTables: async () => ({ dropped: 2, pruned: 5 }) } },
  { workflow: 'reportGatewayUsage', variant: 'two-hours', activities: { reportGatewayRequests: async () => ({ hours: 2 }) } },
];

export const fileOf = ({ workflow, variant }: Pick<Recording, 'workflow' | 'variant'>) => `${workflow}.${variant}.bin`;

import { heartbeat } from '@temporalio/activity';
import type { Config } from '../src/config';
import type { Id } from '../src/core/ids';
import { TryLater } from '../src/core/job-errors';
import type { Log } from '../src/core/log';
import type { Metrics } from '../src/core/metrics';
import type { Secrets } from '../src/core/secrets';
import type { AccountMailer } from '../src/identity/ports';
import {
  closeBilling, composeMail, countLeft, expireIdentityRows, finishOrg, finishProject, getMail, recordBillingFailure, requestProductDeletions,
  requestProjectDeletions, settleMail, verifyAllChains, type DeletionDeps,
} from '../src/identity/service';

export interface IdentityActivityDeps extends DeletionDeps {
  readonly config: Pick<Config, 'SESSION_MAX_DAYS' | 'SESSION_FRESH_SECONDS'>;
  readonly secrets: Secrets;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'auditChainBroken'>;
  readonly accountMailer: AccountMailer;
}
export type IdentityActivities = ReturnType<typeof createIdentityActivities>;

export type MailRun = { mailId: string };
export type ProjectRun = { projectId: Id<'prj'>; operationId: string };
export type OrgRun = { orgId: Id<'org'>; operationId: string };

/** Activities of identity on the queue `system`. All are safe twice. */
export function createIdentityActivities(deps: IdentityActivityDeps) {
  return { ...mailActivities(deps), ...deletionActivities(deps), ...housekeepingActivities(deps) };
}

function mailActivities(deps: IdentityActivityDeps) {
  return {
    /** The mail has left the house; one that is settled stays as it is. */
    async deliverAccountMail({ mailId }: MailRun): Promise<void> {
      const row = await getMail(deps.db.prisma, mailId);
      if (row?.status === 'pending') await deps.accountMailer.send(composeMail(deps.secrets, row));
    },
    /** Its link is wiped. */
    async markAccountMailSent({ mailId }: MailRun): Promise<void> {
      await settleMail(deps.db.prisma, mailId, 'sent', null);
    },
    async markAccountMailFailed({ mailId, code }: MailRun & { code: string }): Promise<void> {
      await settleMail(deps.db.prisma, mailId, 'failed', code);
    },
  };
}

function deletionActivities(deps: IdentityActivityDeps) {
  return {
    requestProductDeletions: ({ projectId }: ProjectRun) => requestProductDeletions(deps, projectId),
    /** Waits by being tried again. What a request slipped in while the deletion began is asked to go as well. */
    async awaitProductsGone({ projectId }: ProjectRun): Promise<void> {
      const left = await countLeft(deps, projectId);
      if (left > 0) throw new TryLater(`${left} of the project's resources are not gone yet.`, { expected: true });
    },
    markProjectDeleted: ({ projectId, operationId }: ProjectRun) => finishProject(deps, projectId, operationId),

    async requestProjectDeletions({ orgId }: OrgRun): Promise<void> {
      await requestProjectDeletions(deps, orgId);
    },
    async awaitProjectsGone({ orgId }: OrgRun): Promise<void> {
      const left = await requestProjectDeletions(deps, orgId);
      if (left > 0) throw new TryLater(`${left} of the organisation's projects are not gone yet.`, { expected: true });
    },
    closeOrganizationBilling: ({ orgId }: OrgRun) => closeBilling(deps, orgId),
    recordBillingFailure: ({ orgId, code }: OrgRun & { code: string }) => recordBillingFailure(deps, orgId, code),
    markOrganizationDeleted: ({ orgId, operationId }: OrgRun) => finishOrg(deps, orgId, operationId),
  };
}

function housekeepingActivities(deps: IdentityActivityDeps) {
  return {
    async expireIdentityRows(): Promise<{ changed: number }> {
      return { changed: await expireIdentityRows(deps.db, deps.config, () => heartbeat()) };
    },
    /** Chains that are not as they were written: counted and logged, by name and number. */
    async verifyAuditChains(): Promise<{ broken: number }> {
      const broken = await verifyAllChains(deps.db.prisma, () => heartbeat());
      for (const { chain, firstBadSeq } of broken) {
        deps.metrics.auditChainBroken.inc();
        deps.log.error({ chain, firstBadSeq }, 'an audit chain is not as it was written');
      }
      return { broken: broken.length };
    },
  };
}

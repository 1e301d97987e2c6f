import { proxyActivities } from '@temporalio/workflow';
import type { PostgresActivities } from '../../activities/postgres';
import { changeRules, type Change } from '../../src/postgres/state';
import { runJob, type Job, type JobEnd } from '../job';
import { marking, within, withinBeating, withoutEnd } from '../policies';
import type { PostgresRun } from './provision-postgres';

export type ChangeRun = PostgresRun & { change: Change };

const { markChanged, markChangeFailed } = proxyActivities<PostgresActivities>(marking);
const { revertAccess, revertLimits, revertMode } = proxyActivities<PostgresActivities>({ ...withoutEnd, heartbeatTimeout: '15s' });

/** A service is changed as it was accepted, or is again what it was before. Input: ids, the generation it speaks for, and in what it changes. */
export async function changePostgres(run: ChangeRun): Promise<JobEnd> {
  const endsAtMs = Date.now() + changeRules[run.change].seconds * 1_000;
  const left = (secondsMax: number) => Math.max(1, Math.min(secondsMax, Math.ceil((endsAtMs - Date.now()) / 1_000)));

  return runJob(run, async (job) => {
    await steps[run.change](job, run, left);
    await job.step('Marking it done', () => markChanged(run));
  }, (failure) => markChangeFailed({ ...run, failure }));
}

type Steps = (job: Job, run: ChangeRun, left: (secondsMax: number) => number) => Promise<void>;

const steps: Readonly<Record<Change, Steps>> = { rotate, plan, suspend, resume };

async function rotate(job: Job, run: ChangeRun, left: (secondsMax: number) => number): Promise<void> {
  const { ensureAccess } = proxyActivities<PostgresActivities>({ ...withinBeating(left(60)), startToCloseTimeout: '15s' });
  job.undo('revertAccess', () => revertAccess(run));
  await job.step('Giving the new password', () => ensureAccess(run));
}

async function plan(job: Job, run: ChangeRun, left: (secondsMax: number) => number): Promise<void> {
  const { applyLimits } = proxyActivities<PostgresActivities>({ ...withinBeating(left(600)), startToCloseTimeout: '60s' });
  job.undo('revertLimits', () => revertLimits(run));
  await job.step('Applying the limits of the plan', () => applyLimits(run));
}

async function suspend(job: Job, run: ChangeRun, left: (secondsMax: number) => number): Promise<void> {
  const { blockAccess, stopInstance } = proxyActivities<PostgresActivities>({ ...withinBeating(left(120)), startToCloseTimeout: '30s' });
  job.undo('revertMode', () => revertMode(run));
  await job.step('Cutting sessions and closing the door', () => blockAccess(run));
  await job.step('Stopping the instance', () => stopInstance(run));
}

async function resume(job: Job, run: ChangeRun, left: (secondsMax: number) => number): Promise<void> {
  const { ensureInstance } = proxyActivities<PostgresActivities>({ ...withinBeating(left(120)), startToCloseTimeout: '60s' });
  job.undo('revertMode', () => revertMode(run));
  await job.step('Starting the instance', () => ensureInstance(run));
  const { unblockAccess } = proxyActivities<PostgresActivities>({ ...withinBeating(left(120)), startToCloseTimeout: '30s' });
  await job.step('Opening the door', () => unblockAccess(run));
  const { verifyAccess } = proxyActivities<PostgresActivities>({ ...within(left(60)), startToCloseTimeout: '15s' });
  await job.step('Logging in as the customer', () => verifyAccess(run));
}

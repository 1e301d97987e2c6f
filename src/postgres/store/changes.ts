import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { Plan } from '../rules';
import { changeRules, type Change, type StatusReason } from '../state';
import type { Run } from './runs';
import { serviceColumns, type ServiceRow } from './services';

export type NewChange = { change: Change; pendingPlan?: Plan; reason?: StatusReason };

/** A change is accepted: updating, one generation on. What a suspended service was suspended for is kept for its undo. False when it was too late. */
export async function beginChange(tx: Tx, service: { id: string; generation: number }, { change, pendingPlan, reason }: NewChange): Promise<boolean> {
  const { from, seconds } = changeRules[change];
  return 1 === await execute(tx, `update postgres_service set status = 'updating', status_before = status, generation = generation + 1, change = $3,
      pending_plan = $4, suspended_reason = coalesce($5, status_reason), suspended_since = suspended_at, status_reason = null, suspended_at = null,
      run_seconds = $6::int, deadline_at = now() + interval '10 minutes', updated_at = now()
    where id = $1 and generation = $2::int and status = any($7::text[])`,
  service.id, service.generation, change, pendingPlan ?? null, reason ?? null, seconds, from);
}

const ended = `status_before = null, change = null, pending_plan = null, suspended_reason = null, suspended_since = null, run_seconds = null, deadline_at = null, updated_at = now()`;

/** updating → what the change leads to. The service as it is now, or null when the compare-and-set lost. */
export async function setChanged(tx: Tx, run: Run): Promise<ServiceRow | null> {
  const [row] = await rows<ServiceRow>(tx, `
    with run as (
      select id, case change when 'suspend' then 'suspended' when 'resume' then 'available' else status_before end as target
      from postgres_service where id = $1 and generation = $2::int and status = 'updating' for update)
    update postgres_service s set status = run.target, plan = coalesce(s.pending_plan, s.plan), ${ended},
      trial_expires_at = case when s.pending_plan is null then s.trial_expires_at end, trial_notice = case when s.pending_plan is null then s.trial_notice end,
      status_reason = case run.target when 'suspended' then s.suspended_reason end,
      suspended_at = case run.target when 'suspended' then coalesce(s.suspended_since, now()) end
    from run where s.id = run.id returning ${serviceColumns}, null as "operationId"`, run.serviceId, run.generation);
  return row ?? null;
}

/** updating → where it came from. Its undo spoke for the next generation, so the row has that one now. */
export async function setUnchanged(tx: Tx, run: Run): Promise<boolean> {
  return 1 === await execute(tx, `update postgres_service set status = status_before, generation = generation + 1, ${ended},
      status_reason = case status_before when 'suspended' then suspended_reason end,
      suspended_at = case status_before when 'suspended' then coalesce(suspended_since, now()) end
    where id = $1 and generation = $2::int and status = 'updating'`, run.serviceId, run.generation);
}

/** failed → provisioning, or deleted → provisioning: one generation on. `runSeconds`: how long its run may take. False when it was too late. */
export async function beginAgain(
  tx: Tx, service: { id: string; generation: number }, from: 'failed' | 'deleted', { runSeconds, trialDays }: { runSeconds: number; trialDays: number | null },
): Promise<boolean> {
  return 1 === await execute(tx, `update postgres_service set status = 'provisioning', generation = generation + 1, status_reason = null, phase = null,
      deleted_before = deleted_at, deleted_at = null, recoverable_until = null, run_seconds = $4::int, deadline_at = now() + interval '10 minutes',
      trial_expires_at = case when $5::int is null then trial_expires_at else now() + $5::int * interval '1 day' end,
      trial_notice = case when $5::int is null then trial_notice end, updated_at = now()
    where id = $1 and generation = $2::int and status = $3 and (status = 'failed' or recoverable_until > now())`,
  service.id, service.generation, from, runSeconds, trialDays);
}

/** provisioning → deleted again, with the time it had to come back. Its undo spoke for the next generation, so the row has that one now. */
export async function setDeletedAgain(tx: Tx, run: Run, undeleteHours: number): Promise<boolean> {
  return 1 === await execute(tx, `update postgres_service set status = 'deleted', generation = generation + 1, phase = null, deadline_at = null, run_seconds = null,
      access_open = false, compute = 'stopped', deleted_at = deleted_before, recoverable_until = deleted_before + $3::int * interval '1 hour', deleted_before = null,
      updated_at = now()
    where id = $1 and generation = $2::int and status = 'provisioning' and deleted_before is not null`, run.serviceId, run.generation, undeleteHours);
}

/** Runs that were cancelled with the present deletion: they are told to end. */
export async function cancelledRuns(db: Db, serviceId: string): Promise<string[]> {
  const found = await rows<{ workflowId: string }>(db, `select distinct o.workflow_id as "workflowId" from operation o join postgres_service s on s.id = o.resource_id
    where s.id = $1 and o.state = 'cancelled' and o.workflow_id is not null and o.finished_at >= s.deletion_requested_at`, serviceId);
  return found.map(({ workflowId }) => workflowId);
}

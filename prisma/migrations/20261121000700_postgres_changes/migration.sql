-- What an accepted change will make of a service; all of it is empty again once the change is done or undone.
alter table postgres_service
  add column change text check (change in ('rotate', 'plan', 'suspend', 'resume')),
  add column pending_plan text check (pending_plan in ('trial', 'starter', 'launch', 'growth', 'business')),
  -- The reason and the time it has when it ends suspended, also when a change from suspended is undone.
  add column suspended_reason text check (suspended_reason in ('trial_expired', 'payment_overdue', 'user', 'admin')),
  add column suspended_since timestamptz(3),
  -- Seconds the run may take from its first activity on; null once it has begun and deadline_at says when it must end.
  add column run_seconds int check (run_seconds > 0),
  -- Of an undelete under way: when it was deleted, so that its undo brings that back.
  add column deleted_before timestamptz(3),
  -- Days before the end of the trial its owners were last told of.
  add column trial_notice int check (trial_notice in (7, 3, 1)),
  add column storage_noticed boolean not null default false,
  add constraint postgres_service_change check (status = 'updating' or (change is null and pending_plan is null and suspended_reason is null and suspended_since is null)),
  add constraint postgres_service_run check (run_seconds is null or status in ('provisioning', 'updating', 'deleting')),
  add constraint postgres_service_undelete check (deleted_before is null or status = 'provisioning');
create index postgres_service_trial_end on postgres_service (trial_expires_at) where trial_expires_at is not null and status not in ('deleting', 'deleted', 'failed');

-- Of a rotation that waits: its password may exist before it is the one in force.
alter table postgres_credential
  add column overlap_seconds int check (overlap_seconds between 60 and 86400),
  add column overlap_until timestamptz(3),
  add column end_sessions boolean not null default false,
  drop constraint postgres_credential_sealed,
  add constraint postgres_credential_sealed check (
    (state <> 'destroyed' or secret_sealed is null) and (state not in ('current', 'previous') or secret_sealed is not null) and (secret_sealed is null) = (verifier_sealed is null));
drop index postgres_credential_current;
create unique index postgres_credential_current on postgres_credential (service_id) where state = 'current';
create unique index postgres_credential_pending on postgres_credential (service_id) where state = 'pending';
create index postgres_credential_overlap on postgres_credential (valid_until) where state = 'previous';

-- What a server last said of itself; totals make the rates of the next time.
create table postgres_observation (
  service_id text primary key references postgres_service (id),
  metrics jsonb not null,
  totals jsonb,
  measured_at timestamptz(3) not null default now()
);

alter table postgres_usage add column billed boolean not null default false;
create index postgres_usage_unbilled on postgres_usage (hour) where not billed;

-- Owners are told by mail of what time and growth do to their databases.
alter table account_mail drop constraint account_mail_kind_check,
  add constraint account_mail_kind_check check (kind in
    ('verify_email', 'reset_password', 'invitation', 'address_known', 'password_changed', 'postgres_trial', 'postgres_storage'));

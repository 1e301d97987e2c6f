-- A copy a service can be restored from. `final` is what a deletion retains: nothing is copied for it.
create table postgres_backup (
  id text primary key,
  service_id text not null references postgres_service (id),
  kind text not null check (kind in ('scheduled', 'manual', 'final')),
  status text not null default 'running' check (status in ('running', 'complete', 'failed', 'expired')),
  size_bytes bigint check (size_bytes >= 0),
  system_id text,
  started_at timestamptz(3) not null default now(),
  completed_at timestamptz(3),
  -- Not before a later backup reaches as far back as the plan promises.
  expires_at timestamptz(3),
  -- From this second on any time can be reached.
  restore_from timestamptz(3),
  -- Last restore drill that succeeded, and last one at all.
  verified_at timestamptz(3),
  drilled_at timestamptz(3),
  updated_at timestamptz(3) not null default now(),
  constraint postgres_backup_running check (status not in ('running', 'failed') or (completed_at is null and restore_from is null)),
  constraint postgres_backup_complete check (status <> 'complete' or (completed_at is not null and restore_from is not null and size_bytes is not null)),
  constraint postgres_backup_final check (kind <> 'final' or status in ('complete', 'expired'))
);
create unique index postgres_backup_running on postgres_backup (service_id) where status = 'running';
create index postgres_backup_by_service on postgres_backup (service_id, started_at desc, id desc);
create index postgres_backup_complete on postgres_backup (service_id, restore_from) where status = 'complete' and kind <> 'final';
create index postgres_backup_expiry on postgres_backup (expires_at) where status = 'complete';

alter table postgres_service
  -- Between these times the service can be restored; written with backups and observations.
  add column earliest_restore_at timestamptz(3),
  add column archived_until timestamptz(3),
  -- What a restored service is made from, also when it is tried again.
  add column restore_backup_id text references postgres_backup (id),
  add column restore_target timestamptz(3),
  add constraint postgres_service_restored check (restore_backup_id is null or source_service_id is not null);

-- Instances on a host that no living row speaks of, since when.
create table postgres_stray (
  host_id text not null references postgres_host (name),
  instance_ref text not null,
  service_id text,
  first_seen_at timestamptz(3) not null default now(),
  last_seen_at timestamptz(3) not null default now(),
  primary key (host_id, instance_ref)
);

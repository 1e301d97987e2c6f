-- A machine that carries services. Its own host process writes the row; placing locks it.
create table postgres_host (
  name text primary key,
  region text not null,
  backend text not null check (backend in ('embedded', 'host_pool', 'cnpg', 'fake')),
  state text not null default 'active' check (state in ('active', 'draining', 'down')),
  capacity_bytes bigint not null,
  reserved_bytes bigint not null default 0,
  max_services int not null,
  services int not null default 0,
  dsn_sealed text,
  last_seen_at timestamptz(3) not null default now(),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint postgres_host_reserved check (reserved_bytes between 0 and capacity_bytes),
  constraint postgres_host_services check (services >= 0 and services <= max_services)
);
create index postgres_host_by_region on postgres_host (region, backend, reserved_bytes) where state = 'active';

create table postgres_service (
  id text primary key,
  org_id text not null,
  project_id text not null references project (id),
  key text not null unique,
  display_name text,
  plan text not null check (plan in ('trial', 'starter', 'launch', 'growth', 'business')),
  status text not null check (status in ('provisioning', 'available', 'updating', 'suspended', 'failed', 'deleting', 'deleted')),
  status_before text check (status_before in ('available', 'suspended')),
  status_reason text check (status_reason in ('trial_expired', 'payment_overdue', 'user', 'admin', 'no_capacity', 'backend_error', 'verification_failed', 'deadline_exceeded')),
  phase text check (phase in ('placing', 'initializing', 'restoring', 'starting', 'configuring', 'verifying')),
  generation int not null default 1 check (generation >= 1),
  region text not null,
  version text not null,
  isolation text not null check (isolation in ('instance', 'database')),
  compute text not null default 'stopped' check (compute in ('running', 'idle', 'stopped')),
  access_open boolean not null default false,
  host text,
  port int,
  database text not null,
  allowed_cidrs text[] not null default '{}' check (cardinality(allowed_cidrs) <= 20),
  deletion_protection boolean not null default false,
  purge boolean not null default false,
  source_service_id text references postgres_service (id),
  host_id text references postgres_host (name),
  reserved_bytes bigint not null default 0,
  instance_ref text,
  system_id text,
  storage_state text not null default 'ok' check (storage_state in ('ok', 'warning', 'read_only', 'restricted')),
  used_bytes bigint check (used_bytes >= 0),
  measured_at timestamptz(3),
  deadline_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  available_at timestamptz(3),
  suspended_at timestamptz(3),
  deletion_requested_at timestamptz(3),
  deleted_at timestamptz(3),
  recoverable_until timestamptz(3),
  trial_expires_at timestamptz(3),
  anonymised_at timestamptz(3),
  constraint postgres_service_reason check ((status in ('suspended', 'failed')) = (status_reason is not null)),
  constraint postgres_service_before check ((status = 'updating') = (status_before is not null)),
  constraint postgres_service_phase check (phase is null or status = 'provisioning'),
  constraint postgres_service_suspended check ((status = 'suspended') = (suspended_at is not null)),
  constraint postgres_service_deletion check (status not in ('deleting', 'deleted') or deletion_requested_at is not null),
  constraint postgres_service_deleted check ((status = 'deleted') = (deleted_at is not null)),
  constraint postgres_service_recoverable check (recoverable_until is null or status = 'deleted'),
  constraint postgres_service_trial check ((plan = 'trial') = (trial_expires_at is not null)),
  constraint postgres_service_access check (not access_open or status in ('provisioning', 'available', 'updating', 'suspended')),
  constraint postgres_service_deadline check ((status in ('provisioning', 'updating', 'deleting')) = (deadline_at is not null)),
  constraint postgres_service_placed check ((host_id is null) = (reserved_bytes = 0) and (host_id is not null or instance_ref is null)),
  constraint postgres_service_anonymised check (anonymised_at is null or (status = 'deleted' and host_id is null)),
  constraint postgres_service_named check ((anonymised_at is null) = (display_name is not null))
);
create index postgres_service_by_project on postgres_service (project_id, created_at desc, id desc);
create index postgres_service_by_host on postgres_service (host_id) where host_id is not null;
create index postgres_service_deadline on postgres_service (deadline_at) where deadline_at is not null;
create index postgres_service_recoverable on postgres_service (recoverable_until) where status = 'deleted' and anonymised_at is null;

-- Gateways hear of what decides whether and where a connection is let in; the payload is the service id.
create function postgres_route_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('postgres_route', new.id);
  return null;
end $$;
create trigger postgres_route_changed after update on postgres_service for each row
  when ((old.status, old.access_open, old.storage_state, old.plan, old.allowed_cidrs, old.host_id, old.instance_ref)
    is distinct from (new.status, new.access_open, new.storage_state, new.plan, new.allowed_cidrs, new.host_id, new.instance_ref))
  execute function postgres_route_changed();

-- pending: decided but not made; the password is made by ensureAccess alone.
create table postgres_credential (
  service_id text not null references postgres_service (id),
  version int not null check (version >= 1),
  state text not null default 'pending' check (state in ('pending', 'current', 'previous', 'destroyed')),
  login text not null,
  secret_sealed text,
  verifier_sealed text,
  valid_until timestamptz(3),
  in_sync boolean,
  checked_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  rotated_at timestamptz(3),
  primary key (service_id, version),
  constraint postgres_credential_sealed check ((state in ('pending', 'destroyed')) = (secret_sealed is null) and (secret_sealed is null) = (verifier_sealed is null)),
  constraint postgres_credential_overlap check (valid_until is null or state in ('previous', 'destroyed'))
);
create unique index postgres_credential_current on postgres_credential (service_id) where state in ('pending', 'current');
create unique index postgres_credential_previous on postgres_credential (service_id) where state = 'previous';

create table postgres_usage (
  service_id text not null references postgres_service (id),
  hour timestamptz(3) not null check (hour = date_trunc('hour', hour, 'UTC')),
  max_bytes bigint not null check (max_bytes >= 0),
  primary key (service_id, hour)
);

-- One intent at a time holds a service; its deletion and its backup stand beside any other.
create unique index operation_postgres_open on operation (resource_id) where state in ('pending', 'running') and kind in
  ('postgres.provision', 'postgres.rotate_credentials', 'postgres.change_plan', 'postgres.suspend', 'postgres.resume', 'postgres.restore', 'postgres.undelete');
create unique index operation_postgres_delete on operation (resource_id) where state in ('pending', 'running') and kind = 'postgres.delete';
create unique index operation_postgres_backup on operation (resource_id) where state in ('pending', 'running') and kind = 'postgres.backup';

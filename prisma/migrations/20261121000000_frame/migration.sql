create table operation (
  id text primary key,
  org_id text not null,
  project_id text,
  kind text not null,
  resource_id text not null,
  state text not null default 'pending' check (state in ('pending', 'running', 'succeeded', 'failed', 'cancelled')),
  steps jsonb not null default '[]',
  error_code text,
  error_message text,
  workflow text,
  workflow_id text,
  task_queue text,
  payload jsonb not null default '{}',
  summary text not null default '',
  request_id text,
  attempts int not null default 0,
  next_attempt_at timestamptz(3),
  dispatched_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  started_at timestamptz(3),
  finished_at timestamptz(3),
  constraint operation_finished check ((state in ('succeeded', 'failed', 'cancelled')) = (finished_at is not null)),
  constraint operation_error check ((state = 'failed') = (error_code is not null)),
  constraint operation_outbox check ((workflow is null) = (workflow_id is null) and (workflow is null) = (task_queue is null))
);
create index operation_by_resource on operation (resource_id, created_at desc, id desc);
create index operation_by_project on operation (org_id, project_id, created_at desc, id desc);
create index operation_outbox on operation (next_attempt_at) where dispatched_at is null and workflow is not null and state = 'pending';

-- Long polls and the relay hear of every change; the payload is the id alone.
create function operation_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('operation', new.id || ':' || new.state);
  return null;
end $$;
create trigger operation_changed after insert or update of state on operation for each row execute function operation_changed();

create table idempotency_key (
  principal text not null,
  operation text not null,
  key text not null,
  fingerprint text not null,
  status int,
  headers json, -- json keeps the order of keys: a replay is the first answer to the byte
  body json,
  created_at timestamptz(3) not null default now(),
  primary key (principal, operation, key)
);
create index idempotency_key_age on idempotency_key (created_at);

-- Unlogged: a commit that touches nothing else waits for no disk. A crash forgets the counts, which only forgives.
create unlogged table rate_limit (
  key text primary key,
  arrival_at timestamptz(6) not null
);
create index rate_limit_age on rate_limit (arrival_at);

create table installation_secret (
  name text primary key,
  sealed text not null,
  certificate text,
  created_at timestamptz(3) not null default now()
);

-- Columns in camel case belong to the engine (better-auth 1.7.5 writes them by these names); ours are in snake case.

create function is_slug(text) returns boolean immutable language sql as $$
  select $1 ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length($1) <= 40
    and $1 not in ('api', 'auth', 'admin', 'new', 'settings', 'login', 'docs', 'health', 'metrics', 'v1', 'me', 'orgs', 'static', 'assets')
$$;

create function touch_updated_at() returns trigger language plpgsql as $$
begin
  new.updated_at := now();
  return new;
end $$;

create table "user" (
  id text primary key,
  name text not null,
  email text not null unique check (email = lower(email) and length(email) <= 254),
  "emailVerified" boolean not null default false,
  image text,
  "createdAt" timestamptz(3) not null default now(),
  "updatedAt" timestamptz(3) not null default now(),
  disabled_at timestamptz(3)
);

create table session (
  id text primary key,
  "userId" text not null references "user" (id) on delete cascade,
  token text not null unique,
  "expiresAt" timestamptz(3) not null,
  "createdAt" timestamptz(3) not null default now(),
  "updatedAt" timestamptz(3) not null default now(),
  "ipAddress" text,
  "userAgent" text,
  "activeOrganizationId" text,
  fresh_at timestamptz(3) default now()
);
create index session_by_user on session ("userId", "createdAt" desc, id desc);
create index session_by_expiry on session ("expiresAt");
create index session_by_age on session ("createdAt");

create table account (
  id text primary key,
  "accountId" text not null,
  "providerId" text not null,
  "userId" text not null references "user" (id) on delete cascade,
  "accessToken" text,
  "refreshToken" text,
  "idToken" text,
  "accessTokenExpiresAt" timestamptz(3),
  "refreshTokenExpiresAt" timestamptz(3),
  scope text,
  password text,
  "createdAt" timestamptz(3) not null default now(),
  "updatedAt" timestamptz(3) not null default now(),
  unique ("providerId", "accountId")
);
create index account_by_user on account ("userId");

create table verification (
  id text primary key,
  identifier text not null,
  value text not null,
  "expiresAt" timestamptz(3) not null,
  "createdAt" timestamptz(3) not null default now(),
  "updatedAt" timestamptz(3) not null default now()
);
create index verification_by_identifier on verification (identifier);
create index verification_by_value on verification (value);
create index verification_by_expiry on verification ("expiresAt");

-- A deleted organisation keeps its row (invoices name it) and loses its slug.
create table organization (
  id text primary key,
  name text not null,
  slug text unique check (is_slug(slug)),
  logo text,
  metadata text,
  "createdAt" timestamptz(3) not null default now(),
  status text not null default 'active' check (status in ('active', 'deleting', 'deleted')),
  time_zone text not null default 'UTC',
  updated_at timestamptz(3) not null default now(),
  constraint organization_slug_lives check ((status = 'deleted') = (slug is null))
);
create trigger organization_touched before update on organization for each row execute function touch_updated_at();

create table member (
  id text primary key,
  "organizationId" text not null references organization (id) on delete cascade,
  "userId" text not null references "user" (id) on delete cascade,
  role text not null check (role in ('viewer', 'member', 'admin', 'owner')),
  "createdAt" timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  unique ("organizationId", "userId")
);
create index member_by_user on member ("userId");
create trigger member_touched before update on member for each row execute function touch_updated_at();

-- Two owners leaving at once both see the other one stay: the organisation's row makes them take turns.
create function member_keeps_owner() returns trigger language plpgsql as $$
begin
  perform 1 from organization where id = old."organizationId" and status <> 'deleted' for update;
  if found and not exists (select 1 from member where "organizationId" = old."organizationId" and role = 'owner') then
    raise exception 'last_owner' using errcode = 'HF001';
  end if;
  return null;
end $$;
create constraint trigger member_keeps_owner after delete or update of role on member
  for each row when (old.role = 'owner') execute function member_keeps_owner();

-- Status in the engine's words: canceled is our "revoked". The inviter's name is kept as it was: the account may go.
create table invitation (
  id text primary key,
  "organizationId" text not null references organization (id) on delete cascade,
  email text not null check (email = lower(email) and length(email) <= 254),
  role text not null check (role in ('viewer', 'member', 'admin', 'owner')),
  status text not null default 'pending' check (status in ('pending', 'accepted', 'rejected', 'canceled', 'expired')),
  "expiresAt" timestamptz(3) not null,
  "inviterId" text not null,
  "createdAt" timestamptz(3) not null default now(),
  inviter_name text,
  accepted_at timestamptz(3),
  updated_at timestamptz(3) not null default now(),
  constraint invitation_accepted check ((status = 'accepted') = (accepted_at is not null))
);
create unique index invitation_one_pending on invitation ("organizationId", email) where status = 'pending';
create index invitation_by_org on invitation ("organizationId", "createdAt" desc, id desc);
create index invitation_by_expiry on invitation ("expiresAt") where status = 'pending';
create trigger invitation_touched before update on invitation for each row execute function touch_updated_at();

create table invitation_token (
  invitation_id text primary key references invitation (id) on delete cascade,
  digest text not null unique
);

create table project (
  id text primary key,
  org_id text not null references organization (id) on delete restrict,
  slug text check (is_slug(slug)),
  display_name text not null,
  status text not null default 'active' check (status in ('active', 'deleting', 'deleted')),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint project_slug_lives check ((status = 'deleted') = (slug is null))
);
create unique index project_slug on project (org_id, slug) where status <> 'deleted';
create index project_by_org on project (org_id, created_at desc, id desc);
create trigger project_touched before update on project for each row execute function touch_updated_at();

-- A slug that was given up stays reserved for a while. scope: '' for organisations, else the organisation's id.
create table slug_alias (
  scope text not null,
  slug text not null,
  target_id text not null,
  reserved_until timestamptz(3) not null,
  created_at timestamptz(3) not null default now(),
  primary key (scope, slug)
);
create index slug_alias_by_expiry on slug_alias (reserved_until);

create table setup_token (
  digest text primary key,
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null default now()
);

create table installation (
  id boolean primary key default true check (id),
  set_up_at timestamptz(3),
  demo_at timestamptz(3)
);
insert into installation default values;

-- The row is the outbox. The link is sealed and wiped once sent or given up.
create table account_mail (
  id text primary key,
  kind text not null check (kind in ('verify_email', 'reset_password', 'invitation', 'address_known', 'password_changed')),
  recipient text not null,
  org_id text,
  sealed_link text,
  facts jsonb not null default '{}',
  status text not null default 'pending' check (status in ('pending', 'sent', 'failed')),
  error_code text,
  dispatched_at timestamptz(3),
  next_attempt_at timestamptz(3) not null default now(),
  attempts int not null default 0,
  sent_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint account_mail_wiped check (status = 'pending' or sealed_link is null),
  constraint account_mail_sent check ((status = 'sent') = (sent_at is not null))
);
create index account_mail_outbox on account_mail (next_attempt_at) where status = 'pending';
create trigger account_mail_touched before update on account_mail for each row execute function touch_updated_at();

-- One chain per organisation (its id) and one named installation. prev_hash is the head before the last entry.
create table audit_head (
  chain text primary key,
  seq bigint not null default 0,
  hash text not null default repeat('0', 64),
  prev_hash text not null default repeat('0', 64),
  verified_seq bigint not null default 0,
  first_bad_seq bigint
);

create table audit_entry (
  id text primary key,
  chain text not null,
  seq bigint not null,
  actor_kind text not null check (actor_kind in ('user', 'apiKey', 'system', 'anonymous')),
  actor_id text,
  actor_name text,
  action text not null,
  outcome text not null check (outcome in ('done', 'denied')),
  project_id text,
  target_type text,
  target_id text,
  changes jsonb not null,
  request_id text,
  ip text,
  created_at timestamptz(3) not null,
  prev_hash text not null,
  hash text not null,
  unique (chain, seq)
);
create index audit_entry_by_actor on audit_entry (chain, actor_id, seq desc);
create index audit_entry_by_target on audit_entry (chain, target_id, seq desc);

create function audit_is_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'audit entries are never changed' using errcode = 'HF002';
end $$;
create trigger audit_entry_append_only before update or delete on audit_entry for each row execute function audit_is_append_only();
create trigger audit_entry_not_emptied before truncate on audit_entry for each statement execute function audit_is_append_only();

create table api_key (
  id text primary key,
  service_id text not null,
  org_id text not null references organization (id) on delete restrict,
  project_id text not null references project (id) on delete restrict,
  name text not null,
  mode text not null check (mode in ('live', 'test')),
  prefix text not null,
  last4 text not null,
  digest text not null unique,
  scopes text[] not null check (cardinality(scopes) between 1 and 4 and scopes <@ array['mail:send', 'mail:read', 'mail:suppressions', 'dns:read']),
  allowed_domains text[] not null default '{}',
  expires_at timestamptz(3),
  last_used_at timestamptz(3),
  replaced_by text,
  grace_until timestamptz(3),
  revoked_at timestamptz(3),
  created_by text not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create index api_key_by_service on api_key (service_id, created_at desc, id desc);

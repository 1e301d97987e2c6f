create table gateway_policy (
  zone_id text primary key references dns_zone on delete cascade,
  version int not null check (version >= 1),
  mode text not null check (mode in ('off', 'monitor', 'block')),
  document jsonb not null check (document ->> 'mode' = mode),
  updated_by text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create index gateway_policy_updated on gateway_policy (updated_at);

create table gateway_policy_version (
  zone_id text not null references dns_zone on delete cascade,
  version int not null check (version >= 1),
  document jsonb not null,
  changes jsonb not null,
  updated_by text,
  created_at timestamptz(3) not null default now(),
  primary key (zone_id, version)
);
create function gateway_policy_version_fixed() returns trigger language plpgsql as $$
begin
  raise exception 'a version of a policy never changes' using errcode = '23514', constraint = 'gateway_policy_version_fixed';
end $$;
create trigger gateway_policy_version_fixed before update on gateway_policy_version for each row execute function gateway_policy_version_fixed();

-- A version follows the one before: nobody overwrites what they have not seen, and the feed hears of it with the commit.
create function gateway_policy_next() returns trigger language plpgsql as $$
begin
  if new.version <> old.version + 1 then
    raise exception 'version % does not follow %', new.version, old.version using errcode = '23514', constraint = 'gateway_policy_next';
  end if;
  return new;
end $$;
create trigger gateway_policy_next before update on gateway_policy for each row execute function gateway_policy_next();
create function gateway_policy_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('gateway_policy', new.zone_id || ':' || new.version);
  return null;
end $$;
create trigger gateway_policy_changed after insert or update on gateway_policy for each row execute function gateway_policy_changed();

-- One row per gateway worker that is or was up.
create table gateway_instance (
  id text primary key,
  state text not null default 'starting' check (state in ('starting', 'ready', 'draining')),
  started_at timestamptz(3) not null default now(),
  heartbeat_at timestamptz(3) not null default now()
);
create index gateway_instance_heartbeat on gateway_instance (heartbeat_at);

-- The version of a policy a worker judges by; it never falls.
create table gateway_ack (
  instance_id text not null references gateway_instance on delete cascade,
  zone_id text not null,
  policy_version int not null,
  at timestamptz(3) not null default now(),
  primary key (instance_id, zone_id)
);
create index gateway_ack_zone on gateway_ack (zone_id);
create function gateway_ack_rises() returns trigger language plpgsql as $$
begin
  if new.policy_version < old.policy_version then return null; end if;
  return new;
end $$;
create trigger gateway_ack_rises before update on gateway_ack for each row execute function gateway_ack_rises();
create function gateway_acked() returns trigger language plpgsql as $$
begin
  perform pg_notify('gateway_ack', new.zone_id);
  return null;
end $$;
create trigger gateway_acked after insert or update on gateway_ack for each row execute function gateway_acked();

-- How a worker last found the origins of a name.
create table gateway_origin (
  instance_id text not null references gateway_instance on delete cascade,
  zone_id text not null,
  hostname text not null,
  address text not null,
  healthy boolean not null,
  last_error text,
  checked_at timestamptz(3) not null,
  primary key (instance_id, zone_id, hostname, address)
);
create index gateway_origin_zone on gateway_origin (zone_id);

create table gateway_event (
  retention_days smallint not null,
  created_at timestamptz(3) not null, -- the time in the id
  id text not null,
  zone_id text not null,
  updated_at timestamptz(3) not null,
  count int not null default 1 check (count >= 1),
  action text not null check (action in ('block', 'rate_limit', 'challenge', 'challenge_failed', 'challenge_passed', 'monitor', 'log', 'allow')),
  would_have text check (would_have in ('block', 'rate_limit', 'challenge')),
  mode text not null check (mode in ('off', 'monitor', 'block')),
  policy_version int not null,
  rule_set_version text,
  source text not null check (source in ('managed', 'custom', 'rate_limit', 'ip_list', 'geo', 'bot', 'challenge', 'transport', 'protocol', 'engine')),
  rule_id text,
  rule_name text,
  rules json not null default '[]',
  anomaly_score int,
  threshold int,
  suggested_exclusion json,
  ip inet not null,
  country text,
  asn bigint,
  request_id text not null,
  method text not null,
  scheme text not null,
  host text not null,
  path text not null,
  query text,
  http_version text not null,
  tls_version text,
  user_agent text,
  referer text,
  status int not null,
  origin_status int,
  duration_ms double precision not null,
  bytes_in bigint not null,
  primary key (retention_days, created_at, id)
) partition by list (retention_days);
create index gateway_event_list on gateway_event (zone_id, created_at desc, id desc);
create index gateway_event_rule on gateway_event (zone_id, rule_id, created_at);
create index gateway_event_ip on gateway_event (zone_id, ip, created_at);
create table gateway_event_1 partition of gateway_event for values in (1) partition by range (created_at);
create table gateway_event_1_default partition of gateway_event_1 default;
create table gateway_event_7 partition of gateway_event for values in (7) partition by range (created_at);
create table gateway_event_7_default partition of gateway_event_7 default;
create table gateway_event_30 partition of gateway_event for values in (30) partition by range (created_at);
create table gateway_event_30_default partition of gateway_event_30 default;
create table gateway_event_default partition of gateway_event default;

-- Every request is counted here once; '' is the source of clean ones.
create table gateway_minute (
  zone_id text not null,
  minute timestamptz(3) not null,
  outcome text not null check (outcome in ('clean', 'allow', 'log', 'monitor', 'challenge', 'challenge_passed', 'challenge_failed', 'rate_limit', 'block')),
  source text not null default '' check ((outcome = 'clean') = (source = '')),
  requests bigint not null check (requests >= 0),
  bytes bigint not null default 0 check (bytes >= 0),
  primary key (zone_id, minute, outcome, source)
) partition by range (minute);
create table gateway_minute_default partition of gateway_minute default;

-- At most 200 keys per zone, hour and dimension; the rest stands under ''.
create table gateway_top_hour (
  zone_id text not null,
  hour timestamptz(3) not null,
  dimension text not null check (dimension in ('rule', 'ip', 'path', 'country', 'user_agent', 'host')),
  key text not null,
  name text,
  country text,
  asn bigint,
  requests bigint not null check (requests >= 0),
  last_seen_at timestamptz(3) not null,
  primary key (zone_id, hour, dimension, key)
) partition by range (hour);
create table gateway_top_hour_default partition of gateway_top_hour default;

-- Batches of counters and events that were taken; a replay finds itself here.
create table gateway_batch (
  instance_id text not null,
  seq bigint not null,
  requests int not null default 0,
  events_lost int not null default 0, -- details dropped while the database was away; the counters are whole
  first_at timestamptz(3),
  last_at timestamptz(3),
  at timestamptz(3) not null default now(),
  primary key (instance_id, seq)
);
create index gateway_batch_at on gateway_batch (at);
create index gateway_batch_lost on gateway_batch (last_at) where events_lost > 0;

create table gateway_certificate (
  id text primary key,
  zone_id text not null references dns_zone,
  org_id text not null,
  project_id text not null,
  primary_hostname text not null,
  hostnames text[] not null check (cardinality(hostnames) between 1 and 100),
  status text not null default 'requested' check (status in ('requested', 'issuing', 'valid', 'renewing', 'failed', 'expired', 'retired')),
  issuer text not null check (issuer in ('self_signed', 'acme')),
  method text check (method in ('dns01', 'http01')),
  generation int not null default 1 check (generation >= 1),
  chain text,
  key_sealed text,
  next_key_sealed text, -- of the order under way
  order_url text,
  serial_number text,
  not_before timestamptz(3),
  not_after timestamptz(3),
  renew_at timestamptz(3),
  attempts int not null default 0,
  next_attempt_at timestamptz(3),
  last_error_code text,
  last_error_message text,
  status_at timestamptz(3) not null default now(),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint gateway_certificate_serves check (status not in ('valid', 'renewing') or (chain is not null and key_sealed is not null and not_after is not null)),
  constraint gateway_certificate_retired check (status <> 'retired' or (key_sealed is null and next_key_sealed is null)),
  constraint gateway_certificate_error check ((last_error_code is null) = (last_error_message is null))
);
create unique index gateway_certificate_of_name on gateway_certificate (zone_id, primary_hostname) where status <> 'retired';
create index gateway_certificate_due on gateway_certificate (status, status_at) where status <> 'retired';
create function gateway_certificate_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('gateway_cert', new.zone_id || ':' || new.id);
  return null;
end $$;
create trigger gateway_certificate_changed after insert or update of status, chain on gateway_certificate for each row execute function gateway_certificate_changed();

-- Orders placed for a name, so that no more than three are in an hour.
create table gateway_certificate_order (
  id bigint generated always as identity primary key,
  hostname text not null,
  ordered_at timestamptz(3) not null default now()
);
create index gateway_certificate_order_name on gateway_certificate_order (hostname, ordered_at);

create table gateway_acme_account (
  directory_url text primary key,
  key_sealed text not null,
  account_url text,
  created_at timestamptz(3) not null default now()
);

-- What a gateway answers below /.well-known/acme-challenge/, for an hour.
create table gateway_acme_token (
  token text primary key,
  hostname text not null,
  key_authorization text not null,
  created_at timestamptz(3) not null default now()
);

-- Up to where billing was told of requests. One row.
create table gateway_usage_report (
  id boolean primary key default true check (id),
  reported_until timestamptz(3) not null
);
insert into gateway_usage_report (reported_until) values (date_trunc('hour', now()));

-- Daily partitions (UTC) from the day of the first instant to that of the second. Safe twice and by several processes. A day
-- that a default partition has rows of stays there.
create function ensure_gateway_partitions(first_at timestamptz, last_at timestamptz) returns void language plpgsql as $$
declare
  day_at timestamp;
  parent record;
  child text;
  taken boolean;
begin
  perform pg_advisory_xact_lock(hashtext('holdfast-gateway-partitions'));
  for parent in select * from (values ('gateway_event_1', 'created_at'), ('gateway_event_7', 'created_at'), ('gateway_event_30', 'created_at'),
      ('gateway_minute', 'minute'), ('gateway_top_hour', 'hour')) as p (name, col) loop
    day_at := date_trunc('day', first_at at time zone 'UTC');
    while day_at <= last_at at time zone 'UTC' loop
      child := parent.name || '_' || to_char(day_at, 'YYYYMMDD');
      if to_regclass(child) is null then
        execute format('select exists (select from %I where %I >= %L and %I < %L)', parent.name || '_default', parent.col, day_at::text || '+00', parent.col, (day_at + interval '1 day')::text || '+00') into taken;
        if not taken then
          execute format('create table %I partition of %I for values from (%L) to (%L)', child, parent.name, day_at::text || '+00', (day_at + interval '1 day')::text || '+00');
        end if;
      end if;
      day_at := day_at + interval '1 day';
    end loop;
  end loop;
end $$;
select ensure_gateway_partitions(now() - interval '1 day', now() + interval '3 days');

-- Days that are past their time are dropped; from default partitions their rows go. Answers how many partitions went.
create function drop_gateway_partitions(at timestamptz) returns int language plpgsql as $$
declare
  parent record;
  child record;
  dropped int := 0;
begin
  perform pg_advisory_xact_lock(hashtext('holdfast-gateway-partitions'));
  for parent in select * from (values ('gateway_event_1', 'created_at', 1), ('gateway_event_7', 'created_at', 7), ('gateway_event_30', 'created_at', 30),
      ('gateway_minute', 'minute', 31), ('gateway_top_hour', 'hour', 31)) as p (name, col, days) loop
    for child in select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = parent.name::regclass and c.relname ~ ('^' || parent.name || '_\d{8}$')
          and to_date(right(c.relname, 8), 'YYYYMMDD') + 1 + parent.days <= (at at time zone 'UTC')::date loop
      execute format('drop table %I', child.name);
      dropped := dropped + 1;
    end loop;
    execute format('delete from %I where %I < $1', parent.name || '_default', parent.col) using at - parent.days * interval '1 day';
  end loop;
  delete from gateway_event_default where created_at < at - interval '30 days';
  return dropped;
end $$;

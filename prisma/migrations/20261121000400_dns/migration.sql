create table dns_nameserver_assignment (
  project_id text not null,
  domain text not null,
  token text not null unique,
  verify_token text not null,
  ever_live boolean not null default false,
  created_at timestamptz(3) not null default now(),
  primary key (project_id, domain)
);

create table dns_zone (
  id text primary key,
  org_id text not null,
  project_id text not null,
  domain text not null,
  unicode_domain text not null,
  registrable text not null,
  mode text not null check (mode in ('full_hosting', 'external')),
  status text not null default 'pending' check (status in ('pending', 'active', 'degraded', 'moved')),
  status_reason text,
  served boolean not null default false,
  custom_nameservers text[] not null default '{}',
  former_nameservers text[] not null default '{}',
  former_until timestamptz(3),
  seen_nameservers text[] not null default '{}',
  cname_token text unique,
  proven_at timestamptz(3),
  last_checked_at timestamptz(3),
  next_check_at timestamptz(3),
  check_lease_until timestamptz(3),
  check_attempt int not null default 0,
  ladder_started_at timestamptz(3) not null default now(),
  check_failures int not null default 0,
  inconclusives int not null default 0,
  misses int not null default 0,
  first_miss_at timestamptz(3),
  last_conclusive_no_at timestamptz(3),
  server_problems boolean not null default false,
  misdelegated boolean not null default false, -- the last conclusive check found a delegation to our addresses that proves nothing
  report json,
  version int not null default 1 check (version >= 1),
  serial bigint not null check (serial between 1 and 4294967295),
  status_version int not null default 1, -- version of the last change that concerns every answer: servers load the zone anew
  sync_lease_until timestamptz(3),
  last_synced_at timestamptz(3),
  sync_report json,
  sync_error_code text,
  sync_error_message text,
  record_count int not null default 0 check (record_count >= 0),
  proxied_count int not null default 0 check (proxied_count >= 0),
  activated_at timestamptz(3),
  moved_at timestamptz(3),
  suspended_at timestamptz(3),
  suspended_reason text check (suspended_reason in ('billing', 'operator')),
  deleted_at timestamptz(3),
  purge_at timestamptz(3),
  purged_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint dns_zone_external check (mode = 'full_hosting' or not served),
  constraint dns_zone_served_lives check (not served or deleted_at is null),
  constraint dns_zone_suspension check ((suspended_at is null) = (suspended_reason is null)),
  constraint dns_zone_deletion check ((deleted_at is null) = (purge_at is null)),
  constraint dns_zone_cname check ((mode = 'external') = (cname_token is not null))
);
create unique index dns_zone_of_project on dns_zone (project_id, domain) where deleted_at is null;
create unique index dns_zone_served on dns_zone (domain) where served;
create unique index dns_zone_holder on dns_zone (domain) where status in ('active', 'degraded') and deleted_at is null;
create index dns_zone_list on dns_zone (project_id, created_at desc, id desc);
create index dns_zone_reversed on dns_zone (reverse(domain) text_pattern_ops);
create index dns_zone_registrable on dns_zone (registrable) where deleted_at is null;
create index dns_zone_next_check on dns_zone (next_check_at) where deleted_at is null;
create index dns_zone_purge on dns_zone (purge_at) where purged_at is null;

create table dns_record (
  id text primary key,
  zone_id text not null references dns_zone,
  type text not null check (type in ('A', 'AAAA', 'CNAME', 'MX', 'TXT', 'NS', 'CAA')),
  name text not null,
  value text not null,
  ttl int not null check (ttl between 60 and 86400),
  priority int check (priority between 0 and 65535),
  proxied boolean not null default false,
  origin_protocol text check (origin_protocol in ('http', 'https')),
  origin_port int check (origin_port between 1 and 65535),
  origin_path text,
  origin_host_header text,
  comment text,
  managed text check (managed in ('mail', 'nameserver', 'certificate')),
  managed_id text,
  challenge boolean not null default false,
  rdata_hash bytea not null,
  version int not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  deleted_at timestamptz(3),
  constraint dns_record_priority check ((type = 'MX') = (priority is not null)),
  constraint dns_record_proxied check (not proxied or type in ('A', 'AAAA', 'CNAME')),
  constraint dns_record_origin check (proxied = (origin_protocol is not null)
    and (proxied or (origin_port is null and origin_path is null and origin_host_header is null)))
);
create unique index dns_record_rdata on dns_record (zone_id, name, type, rdata_hash) where deleted_at is null;
create unique index dns_record_cname on dns_record (zone_id, name) where deleted_at is null and type = 'CNAME';
create index dns_record_feed on dns_record (zone_id, version);
create index dns_record_name on dns_record (zone_id, name) where deleted_at is null;
create index dns_record_list on dns_record (zone_id, created_at desc, id desc);
create index dns_record_managed on dns_record (managed, managed_id) where managed_id is not null;
create index dns_record_value on dns_record (value) where deleted_at is null and type in ('CNAME', 'MX', 'NS');

-- A CNAME stands alone at its name (RFC 1034 §3.6.2). At the apex it is flattened to addresses, so only those are in its way.
create function dns_record_cname_alone() returns trigger language plpgsql as $$
begin
  if new.deleted_at is null and exists (
    select from dns_record a join dns_record b on b.zone_id = a.zone_id and b.name = a.name and b.deleted_at is null and b.id <> a.id
    where a.zone_id = new.zone_id and a.name = new.name and a.deleted_at is null and a.type = 'CNAME'
      and (a.name <> '@' or b.type in ('A', 'AAAA', 'CNAME'))
  ) then
    raise exception 'a CNAME stands alone at its name' using errcode = '23514', constraint = 'dns_record_cname_alone';
  end if;
  return null;
end $$;
create constraint trigger dns_record_cname_alone after insert or update of name, type, deleted_at on dns_record
  deferrable initially deferred for each row execute function dns_record_cname_alone();

create table dns_change_set (
  zone_id text not null references dns_zone,
  version int not null,
  serial bigint not null,
  actor json not null,
  request_id text,
  created int not null,
  updated int not null,
  deleted int not null,
  changes json not null,
  created_at timestamptz(3) not null default now(),
  primary key (zone_id, version)
);
create index dns_change_set_age on dns_change_set (created_at);

create table dns_server (
  id text primary key,
  addresses text[] not null,
  heartbeat_at timestamptz(3) not null default now(),
  started_at timestamptz(3) not null default now()
);

create table dns_ack (
  server_id text not null references dns_server on delete cascade,
  zone_id text not null,
  version int not null,
  at timestamptz(3) not null default now(),
  primary key (server_id, zone_id)
);
create index dns_ack_zone on dns_ack (zone_id);

-- Servers hear of every version and of every beginning and end of service, with the commit that makes it true.
create function dns_zone_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('dns_zone', new.id || ':' || new.version);
  return null;
end $$;
create trigger dns_zone_changed after insert or update of version, served on dns_zone for each row execute function dns_zone_changed();

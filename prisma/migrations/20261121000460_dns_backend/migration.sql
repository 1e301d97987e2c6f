-- Backends that are told of zones instead of following the database: `version > applied_version` is their outbox.
alter table dns_zone
  add column applied_version int not null default 0, -- what a push backend has; only grows
  add column applied_at timestamptz(3),
  add column asked_version int not null default 0, -- the last version the zone's workflow was told of
  add column version_at timestamptz(3) not null default now(), -- when the present version was written
  add column sync_blocked boolean not null default false, -- the guard against mass changes held the last sync back
  add column sync_forced boolean not null default false, -- the next sync may change everything
  add constraint dns_zone_applied check (applied_version between 0 and version);
create index dns_zone_unapplied on dns_zone (version_at) where version > applied_version and (served or applied_version > 0);

-- A push backend stands beside the servers that follow by themselves: it sends no heartbeat and acknowledges by applied_version.
alter table dns_server add column push boolean not null default false;

-- Addresses of the targets of apex CNAME records. `version` of the zone is that of the last change of the addresses.
create table dns_flattened (
  zone_id text not null references dns_zone,
  target text not null,
  ipv4 text[] not null default '{}',
  ipv6 text[] not null default '{}',
  ttl int not null default 300 check (ttl >= 0),
  version int not null default 0,
  resolved_at timestamptz(3), -- the last time that the target's servers said what it has
  next_refresh_at timestamptz(3) not null default now(),
  created_at timestamptz(3) not null default now(),
  primary key (zone_id, target)
);
create index dns_flattened_due on dns_flattened (next_refresh_at);

-- Whoever writes an apex CNAME has its target resolved.
create function dns_record_flattened() returns trigger language plpgsql as $$
begin
  insert into dns_flattened (zone_id, target) select zone_id, value from changed where name = '@' and type = 'CNAME' and deleted_at is null on conflict do nothing;
  if found then notify dns_flattened; end if;
  return null;
end $$;
create trigger dns_record_flattened_insert after insert on dns_record referencing new table as changed for each statement execute function dns_record_flattened();
create trigger dns_record_flattened_update after update on dns_record referencing new table as changed for each statement execute function dns_record_flattened();

-- A target inside its own zone follows every change of the zone.
create function dns_zone_version() returns trigger language plpgsql as $$
begin
  new.version_at := clock_timestamp();
  update dns_flattened set next_refresh_at = now()
    where zone_id = new.id and next_refresh_at > now() and right('.' || target, length(new.domain) + 1) = '.' || new.domain;
  if found then notify dns_flattened; end if;
  return new;
end $$;
create trigger dns_zone_version before update of version on dns_zone for each row
  when (new.version <> old.version) execute function dns_zone_version();

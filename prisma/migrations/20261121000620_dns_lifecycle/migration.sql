alter table dns_zone
  add column restored_at timestamptz(3), -- an unproven claim ends some time after its creation or its last restore
  add column cname_cursor text; -- external: the last proxied name whose CNAME was looked at, so that all have their turn

-- The customer's own name servers under which this project's claim was last proven. They tell the same project's next claim
-- from a stranger's, as the token names do; forgotten when the claim has moved.
alter table dns_nameserver_assignment add column proven_nameservers text[] not null default '{}';

-- What the answers of all zones depend on, as the last worker found it configured: a change of it is a new version of the zones it concerns.
create table dns_platform (
  id boolean primary key default true check (id),
  servers json not null,
  gateway_addresses text[] not null,
  updated_at timestamptz(3) not null default now()
);

-- Deleted records are purged by their age.
create index dns_record_age on dns_record (deleted_at) where deleted_at is not null;

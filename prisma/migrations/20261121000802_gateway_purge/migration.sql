-- A purged zone keeps its row, and nothing of the gateway but counters: what billing was told and events until their time.
create function gateway_zone_purged() returns trigger language plpgsql as $$
begin
  delete from gateway_policy where zone_id = new.id;
  delete from gateway_policy_version where zone_id = new.id;
  delete from gateway_certificate where zone_id = new.id;
  delete from gateway_ack where zone_id = new.id;
  delete from gateway_origin where zone_id = new.id;
  return null;
end $$;
create trigger gateway_zone_purged after update of purged_at on dns_zone for each row when (old.purged_at is null and new.purged_at is not null) execute function gateway_zone_purged();

-- What a write asks about its surroundings without reading the zone: what stands below a name, which CNAMEs lead to it.
create index dns_record_below on dns_record (zone_id, reverse(name) text_pattern_ops) where deleted_at is null;
create index dns_record_target on dns_record (zone_id, reverse(value) text_pattern_ops) where deleted_at is null and type = 'CNAME';
-- Deleted records are kept up to a number, the oldest go first.
create index dns_record_deleted on dns_record (zone_id, deleted_at desc, id desc) where deleted_at is not null;

alter table dns_zone add column sync_reported_at timestamptz(3); -- of sync_report, which may also say that nothing was changed

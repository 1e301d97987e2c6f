-- An expired backup is on its host until this time: one whose host did not answer is dropped by a later run.
alter table postgres_backup add column dropped_at timestamptz(3);
create index postgres_backup_undropped on postgres_backup (expires_at) where status = 'expired' and kind <> 'final' and dropped_at is null;

-- Seconds that a run was never begun with mean nothing once the service is settled: no invariant hangs on them.
alter table postgres_service drop constraint postgres_service_run;

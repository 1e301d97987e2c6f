-- The organisation's share of busy workers for this job, by plan (Temporal's fairness weight).
alter table operation add column weight real not null default 1 check (weight between 0.001 and 1000);

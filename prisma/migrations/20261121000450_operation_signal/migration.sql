-- A run that waits is woken by a signal with the start. The work itself may be done by then, so such a row stays in the
-- outbox until Temporal took the signal.
alter table operation add column signal text;
alter table operation add constraint operation_signal check (signal is null or workflow is not null);
drop index operation_outbox;
create index operation_outbox on operation (next_attempt_at) where workflow is not null and (state = 'pending' or (signal is not null and dispatched_at is null));

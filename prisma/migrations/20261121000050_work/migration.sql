-- The relay also looks after started work that never began: its run may have belonged to an older operation of the same id.
drop index operation_outbox;
create index operation_outbox on operation (next_attempt_at) where workflow is not null and state = 'pending';
create index operation_open on operation (created_at) where workflow is not null and state in ('pending', 'running');
create index operation_by_org on operation (org_id, created_at desc, id desc);

-- One alert per missed deadline, however often reconcile sees it.
create table overdue_alert (
  rule text not null,
  target_id text not null,
  deadline_at timestamptz(3) not null,
  alerted_at timestamptz(3) not null default now(),
  primary key (rule, target_id, deadline_at)
);
create index overdue_alert_age on overdue_alert (alerted_at);

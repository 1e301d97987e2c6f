-- Why a service is suspended: there may be several reasons at once, and each is lifted by who set it. The first of them is the one shown.
create table mail_service_suspension (
  mail_service_id text not null references mail_service (id) on delete cascade,
  reason text not null check (reason in ('reputation', 'payment', 'admin')),
  created_at timestamptz(3) not null default now(),
  primary key (mail_service_id, reason)
);
insert into mail_service_suspension (mail_service_id, reason, created_at) select id, suspended_reason, suspended_at from mail_service where status = 'suspended';

-- Deleting a message looks for its reports.
create index mail_capture_report_message on mail_capture_report (message_id);

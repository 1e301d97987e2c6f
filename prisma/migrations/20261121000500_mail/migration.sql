create table mail_service (
  id text primary key,
  org_id text not null references organization (id) on delete restrict,
  project_id text not null references project (id) on delete restrict,
  display_name text not null,
  plan text not null check (plan in ('launch', 'growth', 'business')),
  status text not null default 'active' check (status in ('active', 'suspended', 'deleting', 'removed')),
  suspended_reason text check (suspended_reason in ('reputation', 'payment', 'admin')),
  suspended_at timestamptz(3),
  sends_per_second int not null check (sends_per_second > 0), -- of the plan: what the rate limit of sending asks for
  reputation_since timestamptz(3), -- mail from before is not held against the service: an operator has lifted a suspension
  warned_at timestamptz(3),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint mail_service_suspension check ((status = 'suspended') = (suspended_reason is not null) and (status = 'suspended') = (suspended_at is not null)),
  constraint mail_service_deletion check ((status in ('deleting', 'removed')) = (deleted_at is not null))
);
create index mail_service_list on mail_service (project_id, created_at desc, id desc) where deleted_at is null;
create index mail_service_deleting on mail_service (deleted_at) where status = 'deleting';

-- Keys belong to services. Not checked for what was written before there were services.
alter table api_key add constraint api_key_service_fk foreign key (service_id) references mail_service (id) on delete restrict not valid;
create index api_key_replaced on api_key (replaced_by) where replaced_by is not null;

create table mail_domain (
  id text primary key,
  mail_service_id text not null references mail_service (id) on delete restrict,
  org_id text not null,
  project_id text not null,
  domain text not null,
  status text not null default 'pending' check (status in ('pending', 'verified', 'degraded', 'failed', 'suspended')),
  failure_reason text check (failure_reason in ('window_expired', 'records_lost')),
  token text not null, -- value of the ownership record after `holdfast-verify=`
  return_path text not null,
  hosted_zone_id text,
  await_version int, -- the first check waits a little until the hosted zone is published so far
  check_count int not null default 0,
  attempt int not null default 0, -- place on the ladder of checks; from the start in each window
  misses int not null default 0, -- definitive ones in a row, each at least an hour after the last that counted
  missed_at timestamptz(3),
  last_miss boolean not null default false, -- the last check was a definitive miss
  dmarc_policy text,
  last_checked_at timestamptz(3),
  next_check_at timestamptz(3),
  verification_deadline timestamptz(3) not null,
  verified_at timestamptz(3),
  degraded_at timestamptz(3),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint mail_domain_failure check ((status = 'failed') = (failure_reason is not null)),
  constraint mail_domain_degradation check ((status = 'degraded') = (degraded_at is not null))
);
create unique index mail_domain_of_project on mail_domain (project_id, domain) where deleted_at is null;
create index mail_domain_of_service on mail_domain (mail_service_id, domain) where deleted_at is null;
create index mail_domain_list on mail_domain (mail_service_id, created_at desc, id desc) where deleted_at is null;
create index mail_domain_next_check on mail_domain (next_check_at) where deleted_at is null;

-- One key pair per selector. `current` signs; `next` waits for its record to be seen; `former` is listed until `listed_until` and signs what it signed first.
create table mail_domain_key (
  domain_id text not null references mail_domain (id) on delete cascade,
  selector text not null,
  state text not null check (state in ('current', 'next', 'former')),
  public_key text not null, -- base64 of the DER SubjectPublicKeyInfo: the p= tag
  private_key text not null, -- sealed PEM
  listed_until timestamptz(3),
  created_at timestamptz(3) not null default now(),
  primary key (domain_id, selector),
  constraint mail_domain_key_listing check ((state = 'former') = (listed_until is not null))
);
create unique index mail_domain_key_current on mail_domain_key (domain_id) where state = 'current';
create unique index mail_domain_key_next on mail_domain_key (domain_id) where state = 'next';
create index mail_domain_key_former on mail_domain_key (listed_until) where state = 'former';

create table mail_domain_record (
  domain_id text not null references mail_domain (id) on delete cascade,
  name text not null,
  purpose text not null check (purpose in ('ownership', 'dkim', 'return_path', 'dmarc')),
  selector text,
  required boolean not null,
  type text not null check (type in ('TXT', 'CNAME')),
  value text not null,
  ttl int not null,
  status text not null default 'pending' check (status in ('pending', 'ok', 'missing', 'mismatch', 'unknown')),
  found text[] not null default '{}' check (cardinality(found) <= 5),
  published boolean not null default false,
  position int not null,
  primary key (domain_id, name),
  constraint mail_domain_record_selector check ((purpose = 'dkim') = (selector is not null))
);

create table mail_message (
  id text primary key,
  mail_service_id text not null references mail_service (id) on delete restrict,
  api_key_id text not null,
  domain_id text not null,
  mode text not null check (mode in ('live', 'test')),
  transport text not null check (transport in ('capture', 'smtp_relay', 'direct_mx', 'resend', 'mailgun')),
  status text not null default 'queued' check (status in ('queued', 'sending', 'deferred', 'sent', 'delivered', 'bounced', 'complained', 'failed', 'suppressed', 'cancelled')),
  status_reason text check (status_reason in ('expired', 'domain_not_verified', 'service_deleted', 'provider_rejected', 'suppressed_bounce', 'suppressed_complaint', 'suppressed_manual')),
  parties json not null, -- { from, to, cc, bcc, replyTo } as parsed once: mailboxes { name, address }
  subject text not null,
  metadata json,
  has_text boolean not null,
  has_html boolean not null,
  size_bytes int not null,
  rfc_message_id text not null,
  recipient_count int not null check (recipient_count > 0),
  counts jsonb not null, -- recipients by status; statuses nobody has are left out
  selector text, -- of DKIM: chosen with the first attempt, the same for all others
  event_sequence int not null default 0,
  cancel_requested_at timestamptz(3),
  dispatch_after timestamptz(3) not null default now(),
  dispatched_at timestamptz(3),
  workflow_id text,
  first_attempt_at timestamptz(3),
  settled_at timestamptz(3),
  content_purged_at timestamptz(3),
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create index mail_message_list on mail_message (mail_service_id, created_at desc, id desc);
create index mail_message_by_status on mail_message (mail_service_id, status, created_at desc, id desc);
create index mail_message_waiting on mail_message (dispatch_after, mail_service_id) where dispatched_at is null;
create index mail_message_unsettled on mail_message (mail_service_id, created_at, id) where settled_at is null;
create index mail_message_content on mail_message (settled_at) where content_purged_at is null and settled_at is not null;

create table mail_content (
  message_id text primary key references mail_message (id) on delete cascade,
  text_body text,
  html_body text,
  derived_text text -- made from html when there was no text: the same in every attempt
);

create table mail_recipient (
  id text primary key,
  message_id text not null references mail_message (id) on delete cascade,
  mail_service_id text not null,
  position int not null, -- in the order to, cc, bcc, from 0; in the envelope sender
  kind text not null check (kind in ('to', 'cc', 'bcc')),
  address text not null,
  address_key text not null, -- the address in lower case
  status text not null default 'queued' check (status in ('queued', 'sending', 'deferred', 'sent', 'delivered', 'bounced', 'complained', 'failed', 'suppressed', 'cancelled')),
  status_reason text check (status_reason in ('expired', 'domain_not_verified', 'service_deleted', 'provider_rejected', 'suppressed_bounce', 'suppressed_complaint', 'suppressed_manual')),
  retry_owner text not null default 'us' check (retry_owner in ('us', 'provider')),
  attempt_no int not null default 0,
  fence int not null default 0,
  lease_until timestamptz(3),
  next_attempt_at timestamptz(3) default now(),
  last_attempt_at timestamptz(3),
  fact_at timestamptz(3), -- of the fact in force: occurred_at, and its event, decide between facts of rank 2
  fact_event_id text,
  mx_host text,
  tls text,
  smtp_code int,
  enhanced_code text,
  diagnostic text check (length(diagnostic) <= 500),
  delivered_at timestamptz(3),
  bounce_class text check (bounce_class in ('hard', 'soft', 'policy', 'undetermined')),
  bounce_sub_type text,
  complained_at timestamptz(3),
  feedback_type text,
  provider text,
  provider_message_id text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint mail_recipient_lease check ((status = 'sending') = (lease_until is not null)),
  constraint mail_recipient_due check (status not in ('queued') or next_attempt_at is not null),
  constraint mail_recipient_provider check ((provider_message_id is null) or (provider is not null))
);
create unique index mail_recipient_address on mail_recipient (message_id, address_key);
create index mail_recipient_of_service on mail_recipient (mail_service_id, address_key, id desc);
create unique index mail_recipient_at_provider on mail_recipient (provider, provider_message_id, address_key) where provider_message_id is not null;
create index mail_recipient_next on mail_recipient (next_attempt_at) where status in ('queued', 'deferred') and retry_owner = 'us';
create index mail_recipient_leased on mail_recipient (lease_until) where status = 'sending';

-- What became of messages, and of domains and services (those have no message). `received_at` picks the partition.
create table mail_event (
  id text not null,
  mail_service_id text not null,
  message_id text,
  recipient_id text,
  recipient text,
  type text not null check (type in ('sent', 'delivered', 'deferred', 'bounced', 'complained', 'failed', 'suppressed', 'cancelled', 'interrupted',
    'domain.verified', 'domain.degraded', 'domain.failed', 'suppression.created', 'suppression.deleted', 'service.warning', 'service.suspended', 'service.resumed',
    'quota.warning', 'quota.reached', 'webhook.test')),
  attempt int,
  sequence int,
  applied boolean not null default true,
  source text not null,
  smtp_code int,
  enhanced_code text,
  diagnostic text check (length(diagnostic) <= 500),
  facts json, -- bounce, complaint, and what events without a message are about
  occurred_at timestamptz(3) not null,
  received_at timestamptz(3) not null default now(),
  primary key (received_at, id),
  constraint mail_event_sequence check ((message_id is null) = (sequence is null))
) partition by range (received_at);
create index mail_event_of_message on mail_event (message_id, sequence desc) where message_id is not null;
create index mail_event_of_service on mail_event (mail_service_id, received_at);

-- Monthly partitions (UTC) from the month of the first instant to that of the second. Safe twice and by several processes.
create function ensure_mail_partitions(first_at timestamptz, last_at timestamptz) returns void language plpgsql as $$
declare
  month_at timestamp := date_trunc('month', first_at at time zone 'UTC');
  name text;
begin
  perform pg_advisory_xact_lock(hashtext('holdfast-mail-partitions'));
  while month_at <= last_at at time zone 'UTC' loop
    name := 'mail_event_' || to_char(month_at, 'YYYY_MM');
    if to_regclass(name) is null then
      execute format('create table %I partition of mail_event for values from (%L) to (%L)', name,
        month_at::text || '+00', (month_at + interval '1 month')::text || '+00');
    end if;
    month_at := month_at + interval '1 month';
  end loop;
end $$;
select ensure_mail_partitions(now(), now() + interval '3 months');

create table mail_provider_event (
  provider text not null,
  provider_event_id text not null,
  recipient text not null default '', -- '' when the provider named none
  type text not null,
  message_id text,
  payload json, -- redacted
  received_at timestamptz(3) not null default now(),
  primary key (provider, provider_event_id, recipient)
);
create index mail_provider_event_age on mail_provider_event (received_at);

-- Mailgun's signature covers a token, not the body: the token stays with the first event that came with it.
create table mail_provider_token (
  provider text not null,
  token text not null,
  provider_event_id text not null,
  received_at timestamptz(3) not null default now(),
  primary key (provider, token)
);
create index mail_provider_token_age on mail_provider_token (received_at);

create table mail_unmatched_event (
  provider text not null,
  provider_event_id text not null,
  recipient text not null default '',
  message_id text,
  provider_message_id text,
  event json not null, -- the canonical event
  received_at timestamptz(3) not null default now(),
  primary key (provider, provider_event_id, recipient)
);
create index mail_unmatched_event_provider on mail_unmatched_event (provider, provider_message_id) where provider_message_id is not null;
create index mail_unmatched_event_age on mail_unmatched_event (received_at);

create table mail_suppression (
  id text primary key,
  mail_service_id text not null references mail_service (id) on delete restrict,
  address text not null,
  address_key text not null,
  reason text not null check (reason in ('bounce', 'complaint', 'manual')),
  source_message_id text,
  note text check (length(note) <= 200),
  expires_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create unique index mail_suppression_address on mail_suppression (mail_service_id, address_key);
create index mail_suppression_list on mail_suppression (mail_service_id, created_at desc, id desc);
create index mail_suppression_expiry on mail_suppression (expires_at) where expires_at is not null;

-- Accepted recipients of a billing period. The quota is one conditional update against `ceiling`, which billing writes.
create table mail_usage (
  mail_service_id text not null references mail_service (id) on delete restrict,
  period_start timestamptz(3) not null,
  period_end timestamptz(3) not null,
  recipients bigint not null default 0 check (recipients >= 0),
  included bigint not null,
  ceiling bigint, -- null: none
  ceiling_reason text not null default 'included' check (ceiling_reason in ('included', 'spend_limit')),
  warned_at timestamptz(3),
  reached_at timestamptz(3),
  updated_at timestamptz(3) not null default now(),
  primary key (mail_service_id, period_start),
  constraint mail_usage_period check (period_start < period_end)
);

create table mail_stats_hour (
  mail_service_id text not null,
  hour timestamptz(3) not null,
  accepted bigint not null default 0,
  sent bigint not null default 0,
  delivered bigint not null default 0,
  deferred bigint not null default 0,
  bounced bigint not null default 0,
  complained bigint not null default 0,
  failed bigint not null default 0,
  suppressed bigint not null default 0,
  cancelled bigint not null default 0,
  live_attempted bigint not null default 0, -- what reputation counts: live mail alone
  live_hard_bounced bigint not null default 0,
  live_complained bigint not null default 0,
  primary key (mail_service_id, hour)
);

create table mail_webhook (
  id text primary key,
  mail_service_id text not null references mail_service (id) on delete restrict,
  url text not null,
  events text[] not null check (cardinality(events) > 0),
  description text check (length(description) <= 200),
  status text not null default 'active' check (status in ('active', 'disabled')),
  disabled_reason text check (disabled_reason in ('gone', 'failing', 'manual')),
  secret text not null, -- sealed
  former_secret text, -- sealed; signs beside the present one until `former_until`
  former_until timestamptz(3),
  failing_since timestamptz(3), -- of the first failure since the last success
  last_success_at timestamptz(3),
  last_failure_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  constraint mail_webhook_disabled check ((status = 'disabled') = (disabled_reason is not null)),
  constraint mail_webhook_former check ((former_secret is null) = (former_until is null))
);
create index mail_webhook_list on mail_webhook (mail_service_id, created_at desc, id desc);

create table mail_webhook_delivery (
  webhook_id text not null references mail_webhook (id) on delete cascade,
  event_id text not null,
  mail_service_id text not null,
  type text not null,
  message_id text,
  body text not null, -- the exact bytes, the same in every attempt
  state text not null default 'pending' check (state in ('pending', 'succeeded', 'failed')),
  attempts int not null default 0,
  fence int not null default 0,
  lease_until timestamptz(3),
  next_attempt_at timestamptz(3) default now(),
  last_status int,
  last_error text,
  response_excerpt text check (length(response_excerpt) <= 4096),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (webhook_id, event_id),
  constraint mail_webhook_delivery_due check ((state = 'pending') = (next_attempt_at is not null))
);
create index mail_webhook_delivery_next on mail_webhook_delivery (next_attempt_at) where state = 'pending';
create index mail_webhook_delivery_list on mail_webhook_delivery (webhook_id, created_at desc, event_id desc);
create index mail_webhook_delivery_age on mail_webhook_delivery (created_at);

-- Mail that was captured instead of sent: the bytes once, an envelope per recipient.
create table mail_capture (
  message_id text primary key references mail_message (id) on delete cascade,
  mail_service_id text not null,
  mime bytea not null,
  captured_at timestamptz(3) not null default now()
);
create index mail_capture_list on mail_capture (mail_service_id, captured_at desc, message_id desc);
create index mail_capture_age on mail_capture (captured_at);

create table mail_capture_envelope (
  message_id text not null references mail_capture (message_id) on delete cascade,
  recipient_id text not null,
  envelope_from text not null,
  recipient text not null,
  attempt int not null,
  captured_at timestamptz(3) not null default now(),
  primary key (message_id, recipient_id)
);

-- Reports the capture transport answers with later: real bytes, fed to the intake when due.
create table mail_capture_report (
  id bigint generated always as identity primary key,
  message_id text not null references mail_message (id) on delete cascade,
  recipient_id text not null,
  kind text not null check (kind in ('dsn', 'arf')),
  envelope_to text not null,
  mime bytea not null,
  due_at timestamptz(3) not null,
  lease_until timestamptz(3),
  done_at timestamptz(3),
  constraint mail_capture_report_once unique (recipient_id, kind)
);
create index mail_capture_report_due on mail_capture_report (due_at) where done_at is null;


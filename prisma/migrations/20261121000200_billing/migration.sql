create extension if not exists btree_gist;

-- What is sold. A changed plan is a new version; running subscriptions keep theirs.
create table plan (
  product text not null check (product in ('mail', 'dns', 'postgres')),
  code text not null check (code in ('none', 'trial', 'starter', 'launch', 'growth', 'business')),
  version int not null check (version >= 1),
  rank int not null check (rank >= 0),
  display_name text not null,
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  monthly_price numeric(20,10) not null check (monthly_price >= 0),
  limits jsonb not null check (jsonb_typeof(limits) = 'object'),
  included jsonb not null check (jsonb_typeof(included) = 'object'),
  overage jsonb check (jsonb_typeof(overage) = 'object'),
  active_from timestamptz(3) not null default now(),
  active_to timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (product, code, version)
);
create unique index plan_active on plan (product, code) where active_to is null;

-- What this installation bills by: written from the configuration at boot, so that rules inside a transaction need no configuration.
create table billing_setting (
  singleton boolean primary key default true check (singleton),
  provider text not null,
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  tax_percent numeric(9,4) not null check (tax_percent >= 0),
  min_invoice_minor bigint not null check (min_invoice_minor >= 0),
  require_payment_method boolean not null,
  updated_at timestamptz(3) not null default now()
);

create table billing_account (
  org_id text primary key,
  provider text not null,
  currency text not null,
  time_zone text not null default 'UTC',
  status text not null default 'current' check (status in ('current', 'past_due', 'restricted', 'suspended')),
  customer_ref text,
  payment_method_kind text,
  payment_method_last4 text,
  spend_limit_minor bigint check (spend_limit_minor >= 0),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);

create table billing_period (
  org_id text not null,
  key text not null check (key ~ '^\d{4}-(0[1-9]|1[0-2])$'),
  start_at timestamptz(3) not null,
  end_at timestamptz(3) not null,
  time_zone text not null,
  closed_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  primary key (org_id, key),
  constraint billing_period_order check (start_at < end_at),
  constraint billing_period_no_overlap exclude using gist (org_id with =, tstzrange(start_at, end_at, '[)') with &&)
);

create table subscription (
  id text primary key,
  org_id text not null,
  project_id text,
  product text not null,
  resource_id text not null,
  plan text not null,
  plan_version int not null,
  pending_plan text,
  pending_version int,
  status text not null check (status in ('trialing', 'active', 'suspended', 'canceled')),
  overage boolean not null default false,
  -- end of the trial the subscription began with; cut when a change of plan ended it sooner
  trial_expires_at timestamptz(3),
  started_at timestamptz(3),
  canceled_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  foreign key (product, plan, plan_version) references plan (product, code, version),
  foreign key (product, pending_plan, pending_version) references plan (product, code, version),
  constraint subscription_scope check ((product = 'dns') = (project_id is null)),
  constraint subscription_pending check ((pending_plan is null) = (pending_version is null)),
  constraint subscription_canceled check ((status = 'canceled') = (canceled_at is not null))
);
create unique index subscription_live on subscription (resource_id) where status <> 'canceled';
create index subscription_by_org on subscription (org_id, created_at desc, id desc);
create index subscription_by_project on subscription (project_id, created_at desc, id desc);
create index subscription_trials on subscription (project_id) where trial_expires_at is not null;

-- Seconds that are paid for. Two of one slot never overlap: no second is billed twice.
create table usage_span (
  id bigint generated always as identity primary key,
  org_id text not null,
  subscription_id text not null references subscription (id),
  resource_id text not null,
  slot text not null check (slot in ('plan', 'overage')),
  product text not null,
  plan text not null,
  plan_version int not null,
  span tstzrange not null,
  foreign key (product, plan, plan_version) references plan (product, code, version),
  constraint usage_span_form check (not isempty(span) and not lower_inf(span) and lower_inc(span) and not upper_inc(span)),
  constraint usage_span_no_overlap exclude using gist (resource_id with =, slot with =, span with &&)
);
create index usage_span_by_org on usage_span (org_id, slot);
create index usage_span_open on usage_span (resource_id, slot) where upper_inf(span);

create table quota_counter (
  scope_id text not null,
  resource text not null,
  org_id text not null,
  project_id text,
  used bigint not null default 0 check (used >= 0),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (scope_id, resource)
) with (fillfactor = 50);
create index quota_counter_by_org on quota_counter (org_id, project_id);

create table invoice (
  id text primary key,
  org_id text not null,
  number text unique,
  status text not null default 'draft' check (status in ('draft', 'finalized', 'paid', 'void')),
  period_key text not null,
  period_start timestamptz(3) not null,
  period_end timestamptz(3) not null,
  currency text not null,
  subtotal_minor bigint not null default 0,
  tax_minor bigint not null default 0,
  total_minor bigint not null default 0,
  carried_in_minor bigint not null default 0,
  credit_minor bigint not null default 0 check (credit_minor >= 0),
  carried_out_minor bigint not null default 0,
  amount_due_minor bigint not null default 0,
  paid_minor bigint not null default 0,
  cutoff_at timestamptz(3) not null,
  finalized_at timestamptz(3),
  due_at timestamptz(3),
  paid_at timestamptz(3),
  voided_at timestamptz(3),
  provider_name text,
  provider_ref text,
  provider_url text,
  provider_pushed_at timestamptz(3),
  provider_error text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  unique (org_id, period_key),
  foreign key (org_id, period_key) references billing_period (org_id, key),
  constraint invoice_number check ((status = 'draft') = (number is null)),
  constraint invoice_finalized check ((status = 'draft') = (finalized_at is null)),
  constraint invoice_paid check ((status = 'paid') = (paid_at is not null)),
  constraint invoice_void check ((status = 'void') = (voided_at is not null)),
  constraint invoice_total check (total_minor = subtotal_minor + tax_minor)
);
create index invoice_by_org on invoice (org_id, created_at desc, id desc);

create table invoice_line (
  invoice_id text not null references invoice (id),
  number int not null check (number >= 1),
  kind text not null check (kind in ('plan', 'usage', 'tax')),
  project_id text,
  resource_id text,
  subscription_id text,
  product text,
  plan text,
  plan_version int,
  metric text,
  description text not null,
  quantity text not null,
  unit_price text not null,
  from_at timestamptz(3) not null,
  to_at timestamptz(3) not null,
  late boolean not null default false,
  amount_minor bigint not null,
  basis jsonb not null,
  primary key (invoice_id, number)
);

create table ledger_entry (
  id text primary key,
  org_id text not null,
  kind text not null check (kind in ('charge', 'payment', 'credit', 'refund', 'adjustment')),
  amount_minor bigint not null,
  invoice_id text references invoice (id),
  ref_type text not null,
  ref_id text not null,
  note text not null default '',
  created_at timestamptz(3) not null default now(),
  unique (kind, ref_type, ref_id)
);
create index ledger_entry_by_org on ledger_entry (org_id, created_at desc, id desc);

create table provider_event (
  provider text not null,
  event_id text not null,
  type text not null,
  payload jsonb not null,
  received_at timestamptz(3) not null default now(),
  primary key (provider, event_id)
);

-- occurred_at is a function of the key, so the unique key holds across partitions and for ever.
create table usage_event (
  id text not null,
  org_id text not null,
  project_id text,
  resource_id text not null,
  subscription_id text references subscription (id),
  metric text not null,
  source text not null,
  key text not null,
  quantity numeric(20,6) not null check (quantity >= 0),
  occurred_at timestamptz(3) not null,
  received_at timestamptz(3) not null default now(),
  primary key (occurred_at, id),
  unique (source, key, occurred_at)
) partition by range (occurred_at);
create index usage_event_by_org on usage_event (org_id, occurred_at, metric) include (subscription_id, resource_id, project_id, quantity, received_at);

create table usage_conflict (
  id bigint generated always as identity primary key,
  source text not null,
  key text not null,
  occurred_at timestamptz(3) not null,
  stored jsonb not null,
  refused jsonb not null,
  received_at timestamptz(3) not null default now()
);

-- Hours for charts and for the provider: derived from usage_event, may be rebuilt at any time.
create table usage_bucket (
  id text primary key,
  org_id text not null,
  project_id text,
  resource_id text not null,
  subscription_id text not null references subscription (id),
  metric text not null,
  hour timestamptz(3) not null,
  quantity numeric(26,6) not null,
  revision int not null default 1,
  pushed_revision int not null default 0,
  updated_at timestamptz(3) not null default now(),
  unique (subscription_id, metric, hour),
  constraint usage_bucket_pushed check (pushed_revision <= revision)
);
create index usage_bucket_by_org on usage_bucket (org_id, hour, metric);

-- Monthly partitions (UTC) from the month of the first instant to that of the second. Safe twice and by several processes.
create function ensure_usage_partitions(first_at timestamptz, last_at timestamptz) returns void language plpgsql as $$
declare
  month_at timestamp := date_trunc('month', first_at at time zone 'UTC');
  name text;
begin
  perform pg_advisory_xact_lock(hashtext('holdfast-usage-partitions'));
  while month_at <= last_at at time zone 'UTC' loop
    name := 'usage_event_' || to_char(month_at, 'YYYY_MM');
    if to_regclass(name) is null then
      execute format('create table %I partition of usage_event for values from (%L) to (%L)', name,
        month_at::text || '+00', (month_at + interval '1 month')::text || '+00');
    end if;
    month_at := month_at + interval '1 month';
  end loop;
end $$;
select ensure_usage_partitions(now() - interval '36 days', now() + interval '3 months');

create function refuse_billing_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger ledger_entry_append_only before update or delete on ledger_entry for each row execute function refuse_billing_change();
create trigger ledger_entry_no_truncate before truncate on ledger_entry for each statement execute function refuse_billing_change();
create trigger usage_event_append_only before update or delete on usage_event for each row execute function refuse_billing_change();
create trigger usage_event_no_truncate before truncate on usage_event for each statement execute function refuse_billing_change();

-- A plan version is what customers agreed to: only its end may be written, once.
create function keep_plan() returns trigger language plpgsql as $$
declare free text[] := array['active_to', 'updated_at'];
begin
  if tg_op = 'DELETE' or old.active_to is not null or to_jsonb(old) - free <> to_jsonb(new) - free then
    raise exception 'plan versions are immutable' using errcode = 'restrict_violation';
  end if;
  return new;
end $$;
create trigger plan_immutable before update or delete on plan for each row execute function keep_plan();

-- A span may be ended, once; one that turns out empty is taken away while it is still open.
create function keep_span() returns trigger language plpgsql as $$
declare free text[] := array['span'];
begin
  if not upper_inf(old.span) or (tg_op = 'UPDATE' and (lower(old.span) <> lower(new.span) or to_jsonb(old) - free <> to_jsonb(new) - free)) then
    raise exception 'a span that has ended is immutable' using errcode = 'restrict_violation';
  end if;
  return case tg_op when 'DELETE' then old else new end;
end $$;
create trigger usage_span_immutable before update or delete on usage_span for each row execute function keep_span();

create function keep_period() returns trigger language plpgsql as $$
declare free text[] := array['closed_at'];
begin
  if tg_op = 'DELETE' or old.closed_at is not null or to_jsonb(old) - free <> to_jsonb(new) - free then
    raise exception 'a billing period is stored once and closed once' using errcode = 'restrict_violation';
  end if;
  return new;
end $$;
create trigger billing_period_immutable before update or delete on billing_period for each row execute function keep_period();

-- Once finalized, what an invoice says never changes; what happens to it (payment, void, provider) does.
create function keep_invoice() returns trigger language plpgsql as $$
declare free text[] := array['status', 'paid_minor', 'paid_at', 'voided_at', 'provider_name', 'provider_ref', 'provider_url',
  'provider_pushed_at', 'provider_error', 'updated_at'];
begin
  if old.status <> 'draft' and (tg_op = 'DELETE' or new.status = 'draft' or to_jsonb(old) - free <> to_jsonb(new) - free) then
    raise exception 'a finalized invoice is immutable' using errcode = 'restrict_violation';
  end if;
  return case tg_op when 'DELETE' then old else new end;
end $$;
create trigger invoice_immutable before update or delete on invoice for each row execute function keep_invoice();

create function keep_invoice_line() returns trigger language plpgsql as $$
begin
  if exists (select 1 from invoice i where i.id in (old.invoice_id, new.invoice_id) and i.status <> 'draft') then
    raise exception 'lines of a finalized invoice are immutable' using errcode = 'restrict_violation';
  end if;
  return case tg_op when 'DELETE' then old else new end;
end $$;
create trigger invoice_line_immutable before insert or update or delete on invoice_line for each row execute function keep_invoice_line();

create function check_invoice_sum() returns trigger language plpgsql as $$
declare
  checked text;
  faulty boolean;
begin
  if tg_table_name = 'invoice' then checked := new.id; else checked := coalesce(new.invoice_id, old.invoice_id); end if;
  select i.total_minor <> coalesce(sum(l.amount_minor), 0) into faulty
  from invoice i left join invoice_line l on l.invoice_id = i.id where i.id = checked group by i.id;
  if faulty then
    raise exception 'the total of invoice % is not the sum of its lines', checked using errcode = 'check_violation';
  end if;
  return null;
end $$;
create constraint trigger invoice_sum after insert or update on invoice deferrable initially deferred for each row execute function check_invoice_sum();
create constraint trigger invoice_line_sum after insert or update or delete on invoice_line deferrable initially deferred for each row execute function check_invoice_sum();

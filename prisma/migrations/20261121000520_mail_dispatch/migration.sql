-- The relay takes turns between services: who waits, and what has waited longest there.
create index mail_message_turns on mail_message (mail_service_id, dispatch_after) where dispatched_at is null;

-- What has been collected of a mail service's counter: read by every collection of its growth.
create index usage_event_mail on usage_event (resource_id, occurred_at) include (quantity) where source = 'mail';

-- Usage finds the subscription of its resource, also after its end.
create index subscription_by_resource on subscription (resource_id, created_at desc, id desc);

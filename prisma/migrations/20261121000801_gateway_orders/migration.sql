-- What an order has brought waits beside what serves until all of it is known to be right.
alter table gateway_certificate add column next_chain text;
alter table gateway_certificate drop constraint gateway_certificate_retired;
alter table gateway_certificate add constraint gateway_certificate_retired check (status <> 'retired' or (key_sealed is null and next_key_sealed is null and next_chain is null));
-- Proofs that were placed for a certificate, whatever the method, so that they can be taken away by whoever ends the order.
alter table gateway_acme_token add column certificate_id text references gateway_certificate on delete cascade;
alter table gateway_acme_token add column zone_id text;
alter table gateway_acme_token add column method text not null default 'http01' check (method in ('dns01', 'http01'));
create index gateway_acme_token_certificate on gateway_acme_token (certificate_id);
-- A certificate belongs to one zone; when that is purged, its rows go with it.
alter table gateway_certificate drop constraint gateway_certificate_zone_id_fkey;
alter table gateway_certificate add constraint gateway_certificate_zone_id_fkey foreign key (zone_id) references dns_zone on delete cascade;

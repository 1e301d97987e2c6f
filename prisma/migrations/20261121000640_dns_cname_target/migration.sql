-- The target of an external zone is called by the token of its project and domain, which the same project gets again: so a
-- deleted claim and the next one have the same.
alter table dns_zone drop constraint dns_zone_cname_token_key;
update dns_zone z set cname_token = n.token from dns_nameserver_assignment n
  where z.mode = 'external' and n.project_id = z.project_id and n.domain = z.domain;

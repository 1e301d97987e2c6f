-- What customers of a registered server are told: it is reached directly, so its address and authority are its own.
alter table postgres_host
  add column public_host text,
  add column public_port int check (public_port between 1 and 65535),
  add column sslmode text check (sslmode in ('verify-full', 'require')),
  add column ca_certificate text,
  add constraint postgres_host_registered check (backend <> 'host_pool'
    or (dsn_sealed is not null and public_host is not null and public_port is not null and sslmode is not null));

import { z } from 'zod';
import { address, count, ipAddresses, networks } from './config-fields';

/** Keys of the security gateway, part of the schema in src/config.ts. */
export const gatewayFields = {
  GATEWAY_HTTP_ADDR: address.default('127.0.0.1:10080').describe('where the security gateway listens for HTTP'),
  GATEWAY_HTTPS_ADDR: address.default('127.0.0.1:10443').describe('where it listens for HTTPS (HTTP/1.1 and HTTP/2)'),
  GATEWAY_ADMIN_ADDR: address.default('127.0.0.1:10081').describe('where it answers /healthz, /readyz and /metrics'),
  GATEWAY_WORKERS: count(0, 64).default(1).describe('processes of the gateway, all at the same addresses; 0: one per core'),
  GATEWAY_ENGINE_THREADS: count(0, 64).default(1).describe('threads per process for what takes its rules longer than 10 ms; 0: one per core'),
  GATEWAY_TRUSTED_PROXIES: networks.default([]).describe('networks whose X-Forwarded-For and -Proto the gateway believes'),
  GATEWAY_MAX_BODY_BYTES: count(0, Number.MAX_SAFE_INTEGER).default(104_857_600).describe('larger requests are refused (413)'),
  GATEWAY_SPOOL_DIR: z.string().optional().describe('where events wait while the database is away; default <HOLDFAST_DATA_DIR>/gateway'),
  GATEWAY_SNAPSHOT_DIR: z.string().optional().describe('where the gateway keeps its zones, sealed, so that it can start without the database; default <HOLDFAST_DATA_DIR>/gateway'),
  GATEWAY_RULES_DIR: z.string().default('rules/base').describe("the gateway's own rules"),
  CRS_DIR: z.string().optional().describe('OWASP Core Rule Set (3.3 or 4): a directory with rules/*.conf'),
  GATEWAY_GEO_COUNTRY_MMDB: z.string().optional().describe('database of countries by address (MMDB); read again when it changes'),
  GATEWAY_GEO_ASN_MMDB: z.string().optional().describe('database of autonomous systems by address (MMDB)'),
  GATEWAY_VERIFIED_BOTS_FILE: z.string().optional().describe('addresses and networks of robots that are let through, one a line'),
  GATEWAY_CERT_ISSUER: z.enum(['self_signed', 'acme']).default('self_signed').describe("who issues certificates of served names: the installation's own authority, or ACME"),
  ACME_DIRECTORY_URL: z.url({ protocol: /^https?$/ }).optional().describe('directory of the ACME server; required with GATEWAY_CERT_ISSUER acme'),
  ACME_EMAIL: z.email().optional().describe('contact of the ACME account; required with GATEWAY_CERT_ISSUER acme'),
  ACME_CA_FILE: z.string().optional().describe('authority of a private ACME server (PEM)'),
  GATEWAY_ALLOW_PRIVATE_ORIGINS: networks.optional().describe('networks the gateway may connect to although they are not public; development 127.0.0.0/8,::1/128, production none'),
  GATEWAY_PUBLIC_ADDRESSES: ipAddresses.optional().describe('what proxied names are answered with; development 127.0.0.1, production none: as if not proxied'),
};

/**
 * Every row of the endpoint tables of the interface specification, in its order. `{P}` is the prefix of an organisation's
 * project. This list is the specification's, not ours: it is never edited to please a test.
 */
export const specificationEndpoints = [
  'POST /api/mail/send',
  'GET /api/mail/messages/:id',
  'GET {P}/mail/services',
  'POST {P}/mail/services',
  'GET {P}/mail/services/:mailServiceId',
  'DELETE {P}/mail/services/:mailServiceId',
  'POST {P}/mail/services/:mailServiceId/domains',
  'GET {P}/mail/services/:mailServiceId/domains',
  'POST {P}/mail/domains/:domainRef/verify',
  'DELETE {P}/mail/domains/:domainRef',
  'POST {P}/mail/services/:mailServiceId/api-keys',
  'GET {P}/mail/services/:mailServiceId/api-keys',
  'DELETE {P}/mail/api-keys/:apiKeyId',
  'GET {P}/mail/services/:mailServiceId/messages',
  'POST /api/mail/provider-events/:provider',
  'GET {P}/dns/zones',
  'POST {P}/dns/zones',
  'POST {P}/dns/scan',
  'GET {P}/dns/zones/:zoneId',
  'DELETE {P}/dns/zones/:zoneId',
  'POST {P}/dns/zones/:zoneId/verify',
  'POST {P}/dns/zones/:zoneId/sync',
  'GET {P}/dns/zones/:zoneId/records',
  'POST {P}/dns/zones/:zoneId/records',
  'PATCH {P}/dns/zones/:zoneId/records/:recordId',
  'DELETE {P}/dns/zones/:zoneId/records/:recordId',
  'POST {P}/dns/zones/:zoneId/records/bulk-delete',
  'POST {P}/dns/zones/:zoneId/records/:recordId/restore',
  'GET {P}/dns/zones/:zoneId/security-gateway',
  'PUT {P}/dns/zones/:zoneId/security-gateway',
  'GET {P}/dns/zones/:zoneId/security-gateway/events',
  'GET {P}/dns/zones/:zoneId/security-gateway/summary',
  'GET /api/dns/zones',
  'GET /api/dns/zones/:zoneId/records',
  'GET {P}/postgres/services',
  'POST {P}/postgres/services',
  'GET {P}/postgres/services/:serviceId',
  'GET {P}/postgres/services/:serviceId/credentials',
  'DELETE {P}/postgres/services/:serviceId',
] as const;

/** What the specification says of success where it is not 200. */
export const specificationAccepted: readonly string[] = [
  'POST /api/mail/send', 'POST {P}/postgres/services', 'DELETE {P}/postgres/services/:serviceId',
];

/** Whose credential a row names, where the specification names one; the rows with the project prefix take a session. */
export const specificationScopes: Readonly<Record<string, string>> = {
  'POST /api/mail/send': 'mail:send',
  'GET /api/mail/messages/:id': 'mail:read',
  'GET /api/dns/zones': 'dns:read',
  'GET /api/dns/zones/:zoneId/records': 'dns:read',
};

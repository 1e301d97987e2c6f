/** Workflow ids are public: `<product>-<verb>/<row id>` (design.md §5). They change only behind patched(). */
export const workflowIds = {
  provisionPostgres: (serviceId: string) => `postgres-provision/${serviceId}`,
  changePostgres: (operationId: string) => `postgres-change/${operationId}`,
  restorePostgres: (operationId: string) => `postgres-restore/${operationId}`,
  backupPostgres: (backupId: string) => `postgres-backup/${backupId}`,
  deletePostgres: (serviceId: string) => `postgres-delete/${serviceId}`,
  sendAccountMail: (mailId: string) => `identity-mail/${mailId}`,
  deleteProject: (projectId: string) => `identity-delete-project/${projectId}`,
  deleteOrganization: (orgId: string) => `identity-delete-org/${orgId}`,
  verifyZone: (zoneId: string) => `dns-verify/${zoneId}`,
  syncZone: (zoneId: string) => `dns-sync/${zoneId}`,
  verifyDomain: (domainId: string) => `mail-verify/${domainId}`,
  deleteMailService: (mailServiceId: string) => `mail-delete-service/${mailServiceId}`,
  deliverMessage: (messageId: string) => `mail-deliver/${messageId}`,
  deliverBatch: (firstMessageId: string) => `mail-batch/${firstMessageId}`,
  purgeZone: (zoneId: string) => `dns-purge/${zoneId}`,
} as const;

/** Schedule ids have no slash. */
export const scheduleIds = {
  reconcile: 'system-reconcile',
  expireIdentity: 'identity-expire-identity',
  verifyAudit: 'identity-verify-audit',
  recheckDomains: 'mail-recheck-domains',
  collectUsage: 'billing-collect-usage',
  refreshSpend: 'billing-refresh-spend',
  mailReputation: 'mail-reputation',
  mailRetention: 'mail-retention',
  postgresLifecycle: 'postgres-lifecycle',
  postgresObserve: 'postgres-observe',
  postgresBackups: 'postgres-backups',
  postgresDrill: 'postgres-restore-drill',
  postgresInventory: 'postgres-inventory',
  dnsRetention: 'dns-retention',
  dnsDrift: 'dns-drift',
} as const;

/** Exports are public names: they change only behind patched(), and each has a recorded history in test/workflows/histories. */
export { reconcile } from './system/reconcile';
export { advancePostgresLifecycle } from './postgres/advance-postgres-lifecycle';
export { deletePostgres } from './postgres/delete-postgres';
export { observePostgres } from './postgres/observe-postgres';
export { provisionPostgres } from './postgres/provision-postgres';
export { deleteOrganization } from './identity/delete-organization';
export { deleteProject } from './identity/delete-project';
export { expireIdentity } from './identity/expire-identity';
export { sendAccountMail } from './identity/send-account-mail';
export { verifyAudit } from './identity/verify-audit';
export { deleteMailService } from './mail/delete-mail-service';
export { recheckMailDomains } from './mail/recheck-domains';
export { verifyDomain } from './mail/verify-domain';
export { verifyZone } from './dns/verify-zone';
export { syncZone } from './dns/sync-zone';
export { purgeZone } from './dns/purge-zone';
export { retainDns } from './dns/retain-dns';

import { scheduleIds } from './temporal/ids';
import type { ScheduleDefinition } from './temporal/schedules';

/** Work the platform does by itself; made and corrected by every worker that starts. */
export const schedules: readonly ScheduleDefinition[] = [
  { id: scheduleIds.reconcile, workflow: 'reconcile', queue: 'system', product: 'system', every: '5 minutes', summary: 'Find accepted work without a run, and missed deadlines', atStart: true },
  { id: scheduleIds.expireIdentity, workflow: 'expireIdentity', queue: 'system', product: 'identity', every: '1 hour', summary: 'Drop ended sessions, tokens and reservations' },
  { id: scheduleIds.verifyAudit, workflow: 'verifyAudit', queue: 'system', product: 'identity', every: '1 day', summary: 'Check what the audit chains have gained' },
  { id: scheduleIds.collectUsage, workflow: 'collectUsage', queue: 'billing', product: 'billing', every: '1 hour', offset: '5 minutes', summary: 'Store the use of the hours that have ended' },
  { id: scheduleIds.refreshSpend, workflow: 'refreshSpend', queue: 'billing', product: 'billing', every: '5 minutes', summary: 'Bring what mail may use up to date with plans and spend limits' },
  { id: scheduleIds.mailReputation, workflow: 'evaluateMailReputation', queue: 'mail', product: 'mail', every: '5 minutes', summary: 'Warn or suspend senders whose mail bounces or annoys too much' },
  { id: scheduleIds.mailRetention, workflow: 'retainMail', queue: 'mail', product: 'mail', every: '1 day', summary: 'Remove mail that is past its time' },
  { id: scheduleIds.recheckDomains, workflow: 'recheckMailDomains', queue: 'mail', product: 'mail', every: '15 minutes', summary: 'Check verified sender domains again' },
  { id: scheduleIds.postgresLifecycle, workflow: 'advancePostgresLifecycle', queue: 'postgres', product: 'postgres', every: '1 minute', summary: 'Overdue work, trials, ended passwords and purges of Postgres services' },
  { id: scheduleIds.postgresObserve, workflow: 'observePostgres', queue: 'postgres', product: 'postgres', every: '1 minute', summary: 'Ask every Postgres server for its size and state' },
  { id: scheduleIds.dnsRetention, workflow: 'retainDns', queue: 'dns', product: 'dns', every: '1 day', summary: 'Drop deleted DNS records and change sets after their time' },
  { id: scheduleIds.dnsDrift, workflow: 'checkDrift', queue: 'dns', product: 'dns', every: '10 minutes', summary: 'Publish zones anew that are answered otherwise than they are here' },
  { id: scheduleIds.gatewayCertSweep, workflow: 'sweepCertificates', queue: 'gateway', product: 'gateway', every: '1 hour', summary: 'Renew, expire and retire certificates of proxied names', atStart: true },
  { id: scheduleIds.gatewayMaintain, workflow: 'maintainGateway', queue: 'gateway', product: 'gateway', every: '1 day', summary: "Make and drop days of the gateway's events", atStart: true },
  { id: scheduleIds.gatewayUsage, workflow: 'reportGatewayUsage', queue: 'gateway', product: 'gateway', every: '1 hour', summary: 'Tell billing how many requests came by the gateway' },
  { id: scheduleIds.postgresBackups, workflow: 'keepPostgresBackups', queue: 'postgres', product: 'postgres', every: '5 minutes', summary: 'Take the base backups that are due, drop those past their time' },
  { id: scheduleIds.postgresDrill, workflow: 'drillPostgresBackup', queue: 'postgres', product: 'postgres', every: '1 day', summary: 'Restore one backup in full, to prove that it can be' },
  { id: scheduleIds.postgresInventory, workflow: 'reviewPostgresInventory', queue: 'postgres', product: 'postgres', every: '1 hour', summary: 'Take instances out of service that no living row speaks of' },
];

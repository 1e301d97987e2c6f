import { join } from 'node:path';
import { captureMailer, smtpMailer } from './adapters/mail-transport/account-mailers';
import { createLedgerProvider } from './adapters/billing-provider/ledger';
import { transferZone } from './adapters/dns-backend/axfr-client';
import { EmbeddedBackend as EmbeddedDnsBackend } from './adapters/dns-backend/embedded';
import { PowerdnsBackend } from './adapters/dns-backend/powerdns';
import { resolverOf } from './adapters/dns-resolver/choice';
import { chooseEventSources } from './adapters/mail-events/choice';
import { CaptureTransport } from './adapters/mail-transport/capture';
import { chooseTransport } from './adapters/mail-transport/choice';
import { pgCustomer } from './adapters/postgres-customer/pg';
import { CheckedWebhookCaller } from './adapters/webhook-caller/checked-caller';
import type { BillingProvider } from './billing/ports';
import { readBooks } from './billing/store/ledger';
import type { Config } from './config';
import { systemClock, type Clock } from './core/clock';
import { Cursors } from './core/cursor';
import { createLog, type Log } from './core/log';
import { createMetrics, type Metrics } from './core/metrics';
import { Secrets } from './core/secrets';
import { openDatabase, type Database } from './db/client';
import { createListener, type Listener } from './db/listen';
import type { DnsBackend, DnsResolver } from './dns/ports';
import { dnsReconcileRule } from './dns/reconcile';
import { platformOf, type Platform } from './dns/rules/platform';
import { answerOf } from './edge/dns/answer-of';
import { platformTransferKeys } from './dns/rules/transfer-key';
import { countZones, notifyServers, readServers, requestDeletion as requestDnsDeletion, type StartSync } from './dns/service';
import type { RouteDeps } from './http/routes';
import { trustedProxies } from './http/client-address';
import { createLimiter } from './http/rate-limit';
import type { AccountMailer } from './identity/ports';
import type { MailTransports, WebhookCaller } from './mail/ports';
import { keepCapture, planReport } from './mail/store/captures';
import { appendAudit, checkApiKey, createEngine, createMailDispatcher, readSession, recordDenial, type Engine, type ProductDeletion, type StartMail } from './identity/service';
import { createAlerts, type Alerts } from './operations/alerts';
import { createDispatcher, type Dispatcher } from './operations/dispatcher';
import { attendOverdue, type ReconcileRule } from './operations/reconcile';
import { createOperationWatch, type OperationWatch } from './operations/watch';
import type { PostgresBackend, PostgresCustomer } from './postgres/ports';
import type { OpenParts } from './edge/gateway/role';
import { gatewayParts } from './gateway-composition';
import { certificateIssuerOf, gatewayOf } from './gateway-control-composition';
import type { CertificateIssuer } from './gateway/ports';
import { certificateReconcileRule } from './gateway/reconcile';
import { postgresReconcileRule } from './postgres/reconcile';
import { changePlan as changePostgresPlan, countServices, lockForBilling, requestDeletion as requestPostgresDeletion, type PublicGateway } from './postgres/service';
import { domainReconcileRule, serviceReconcileRule } from './mail/reconcile';
import { changePlan as changeMailPlan, countServices as countMailServices, requestDeletion as requestMailDeletion } from './mail/service';
import { createCancelRun, type CancelRun } from './temporal/cancel';
import { openMailDelivery, openMailSending } from './mail-composition';
import { eventReconcileRule, messageReconcileRule, type DeliveryDeps } from './mail/service';
import { postgresBackendOf, publicGatewayOf } from './postgres-composition';
import { openTemporal, type Temporal } from './temporal/connection';
import { workflowIds } from './temporal/ids';
import { startOptions } from './temporal/options';
import { searchAttributes } from './temporal/search-attributes';

export { schedules } from './schedules';

/** What every process has. */
export interface CoreDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly db: Database;
  /** Connects when somebody first listens. */
  readonly listener: Listener;
  readonly metrics: Metrics;
  readonly secrets: Secrets;
  readonly cursors: Cursors;
}

export function openCore(config: Config, process: string): CoreDeps {
  const log = createLog(process, config.LOG_LEVEL);
  return {
    config, log,
    clock: systemClock,
    db: openDatabase({ url: config.DATABASE_URL, max: config.DATABASE_POOL_MAX, process, log }),
    listener: createListener({ url: config.DATABASE_URL, process, log }),
    metrics: createMetrics(process),
    secrets: new Secrets(config.HOLDFAST_MASTER_KEY),
    cursors: new Cursors(config.AUTH_SECRET),
  };
}

/** What operations, the frame and the products' services need in the API process. */
export interface AppDeps extends CoreDeps, Omit<RouteDeps, keyof CoreDeps> {
  readonly engine: Engine;
  readonly temporal: Temporal;
  readonly dispatcher: Dispatcher;
  readonly mailDispatcher: ReturnType<typeof createMailDispatcher>;
  readonly startSync: StartSync;
  readonly watch: OperationWatch;
}

export function openApi(core: CoreDeps): AppDeps {
  const { config, db, log } = core;
  const engine = createEngine(db, config);
  const temporal = temporalOf(config, 'api');
  const sessions = { db, engine, config };
  const mailDispatcher = createMailDispatcher({ db, log, start: startMailOf(temporal) });
  return {
    ...core, engine, temporal, mailDispatcher, productDeletions: productDeletionsOf(config), appendAudit,
    startAccountMail: (mailId) => mailDispatcher.start(mailId),
    changePlan: { mail: changeMailPlan, postgres: changePostgresPlan }, lockForChange: { postgres: lockForBilling },
    billingProvider: billingProviderOf(core),
    publicGateway: publicGatewayOf(core),
    dnsPlatform: platformOf(config),
    dnsResolver: resolverOf(config),
    eventSources: chooseEventSources(config),
    dnsLookup: answerOf,
    dnsBackend: dnsBackendOf(core),
    ...gatewayOf(config),
    startSync: startSyncOf(temporal),
    ...openMailSending(core, temporal),
    dispatcher: createDispatcher({ database: db, temporal, log, metrics: core.metrics }),
    watch: createOperationWatch({ database: db, listener: core.listener }),
    limiter: createLimiter(db),
    managementRate: { name: 'management', limit: config.RATE_MANAGEMENT_PER_5_MINUTES, periodSeconds: 300 },
    trustedProxies: trustedProxies(config.TRUSTED_PROXIES),
    authenticator: {
      readSession: (cookie, slugs) => readSession(sessions, cookie, slugs),
      checkApiKey: (authorization) => checkApiKey({ db }, authorization),
    },
    recordDenial: (denial) => recordDenial(db, { ...denial, target: null }),
    observe: ({ operation, method, status, seconds }) => core.metrics.httpRequestSeconds.observe({ operation, method, status: String(status) }, seconds),
  };
}

/** One switch per port: who collects the money. */
function billingProviderOf({ config, db }: CoreDeps): BillingProvider {
  switch (config.BILLING_PROVIDER) {
    case 'ledger': return createLedgerProvider({ readInvoice: (ref) => readBooks(db.prisma, ref) });
  }
}

/** What activities, relay and reconcile need in the worker process. */
export interface WorkerDeps extends CoreDeps, Pick<DeliveryDeps, 'signingKey' | 'resultWriter' | 'attempts' | 'alertRefusal'> {
  readonly temporal: Temporal;
  readonly alerts: Alerts;
  /** One line per product that has transitional rows. */
  readonly reconcileRules: readonly ReconcileRule[];
  readonly postgresBackend: PostgresBackend;
  readonly postgresCustomer: PostgresCustomer;
  readonly publicGateway: PublicGateway;
  readonly dnsPlatform: Platform;
  readonly dnsResolver: DnsResolver;
  readonly mailTransports: MailTransports;
  readonly dnsBackend: DnsBackend;
  readonly certificateIssuer: CertificateIssuer;
  readonly certificateIssuerName: CertificateIssuer['name'];
  readonly startSync: StartSync;
  readonly webhookCaller: WebhookCaller;
  readonly productDeletions: readonly ProductDeletion[];
  readonly accountMailer: AccountMailer;
  readonly cancelRun: CancelRun;
  /** Postgres services past their deadline are raised and have a run again. */
  readonly attendOverdueServices: (beat: () => void) => Promise<{ restarted: number; overdue: number }>;
}

export function openWorker(core: CoreDeps): WorkerDeps {
  const { config, log, metrics } = core;
  const temporal = temporalOf(config, 'worker');
  const alerts = createAlerts({ appendAudit, metrics, log });
  return {
    ...core,
    temporal,
    dnsPlatform: platformOf(config),
    dnsResolver: resolverOf(config),
    mailTransports: mailTransportsOf(core),
    dnsBackend: dnsBackendOf(core),
    certificateIssuer: certificateIssuerOf(core),
    certificateIssuerName: config.GATEWAY_CERT_ISSUER,
    startSync: startSyncOf(temporal),
    webhookCaller: new CheckedWebhookCaller({ allowPrivate: config.MAIL_WEBHOOK_ALLOW_PRIVATE }),
    ...openMailDelivery(core),
    cancelRun: createCancelRun(temporal),
    alerts,
    attendOverdueServices: (beat) => attendOverdue({ database: core.db, temporal, alerts, log, beat }, postgresReconcileRule),
    reconcileRules: [postgresReconcileRule, dnsReconcileRule, certificateReconcileRule, domainReconcileRule, serviceReconcileRule, messageReconcileRule, eventReconcileRule],
    postgresBackend: postgresBackendOf(core),
    postgresCustomer: pgCustomer,
    publicGateway: publicGatewayOf(core),
    productDeletions: productDeletionsOf(config),
    accountMailer: accountMailerOf(config),
  };
}

/** What a process of the security gateway is made of. */
export function openGateway(core: CoreDeps): OpenParts {
  return gatewayParts(core, resolverOf(core.config));
}

/** What a project holds, by product: deleting it asks each of them. */
function productDeletionsOf(config: Config): readonly ProductDeletion[] {
  const dns = { config, dnsPlatform: platformOf(config) };
  return [
    { kind: 'postgres_service', requestDeletion: requestPostgresDeletion, countLive: countServices },
    { kind: 'mail_service', requestDeletion: requestMailDeletion, countLive: countMailServices },
    { kind: 'dns_zone', requestDeletion: (tx, projectId) => requestDnsDeletion(tx, dns, projectId), countLive: countZones },
  ];
}

/** Live mail goes where MAIL_TRANSPORT says, mail of test keys is captured. */
function mailTransportsOf({ config, db, clock }: CoreDeps): MailTransports {
  const capture = new CaptureTransport({
    keep: (job, accepted) => keepCapture(db, job.mime, job, accepted),
    report: ({ messageId, recipientId }, report) => planReport(db, { messageId, recipientId, ...report }),
    feedbackAddress: `fbl@${config.MAIL_BOUNCE_DOMAIN}`, now: () => clock.now(),
  });
  return { live: chooseTransport(config, { capture, resolver: resolverOf(config) }), test: capture };
}

/** One wait of an answer; whoever has more time asks again. */
const backendWaitMs = 1_000;

/** One switch per port: who answers for the zones. */
function dnsBackendOf({ config, db }: CoreDeps): DnsBackend {
  const [key] = platformTransferKeys(config.HOLDFAST_MASTER_KEY);
  switch (config.DNS_BACKEND) {
    case 'powerdns': return new PowerdnsBackend({ url: config.POWERDNS_URL, apiKey: config.POWERDNS_API_KEY, serverId: config.POWERDNS_SERVER_ID, timeoutMs: config.POWERDNS_TIMEOUT_MS });
    case 'embedded': return new EmbeddedDnsBackend({
      notify: (zoneId) => notifyServers(db.prisma, zoneId), readServers: (zoneId) => readServers(db.prisma, zoneId), waitMs: backendWaitMs,
      servers: config.DNS_SERVERS.flatMap(({ addresses: [address], port }) => (address === undefined ? [] : [{ address, port }])),
      transfer: (server, domain) => transferZone({ server, domain, timeoutMs: backendWaitMs, ...(key && { key }) }),
    });
  }
}

/** Development reads its mails in files; elsewhere they go through a relay. While mail is off none is written. */
function accountMailerOf({ ACCOUNT_MAIL, ACCOUNT_MAIL_FROM, ACCOUNT_SMTP_URL, HOLDFAST_DATA_DIR }: Config): AccountMailer {
  return ACCOUNT_MAIL === 'transport' ? smtpMailer(ACCOUNT_SMTP_URL, ACCOUNT_MAIL_FROM) : captureMailer(join(HOLDFAST_DATA_DIR, 'mail'), ACCOUNT_MAIL_FROM);
}

/** One start of an account mail's workflow, within the deadline of every start. The relay repeats what fails. */
export function startMailOf(temporal: Temporal): StartMail {
  return async (mailId) => {
    await temporal.within(startOptions.deadlineMs, () => temporal.client.workflow.start('sendAccountMail', {
      workflowId: workflowIds.sendAccountMail(mailId), taskQueue: 'system', args: [{ mailId }], workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE', typedSearchAttributes: searchAttributes({ product: 'identity', resourceId: mailId }), staticSummary: 'Send an account mail',
    }));
  };
}

/** One start or signal of the workflow that publishes a zone, within the deadline of every start. */
export function startSyncOf(temporal: Temporal): StartSync {
  return async (zoneId) => {
    await temporal.within(startOptions.deadlineMs, () => temporal.client.workflow.signalWithStart('syncZone', {
      workflowId: workflowIds.syncZone(zoneId), taskQueue: 'dns', args: [{ zoneId }], signal: 'requested', workflowIdConflictPolicy: 'USE_EXISTING', workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      typedSearchAttributes: searchAttributes({ product: 'dns', resourceId: zoneId }), staticSummary: 'Publish a DNS zone',
    }));
  };
}

function temporalOf(config: Config, process: string): Temporal {
  return openTemporal({ address: config.TEMPORAL_ADDRESS, namespace: config.TEMPORAL_NAMESPACE, identity: `${process}@${config.HOLDFAST_INSTALLATION}` });
}

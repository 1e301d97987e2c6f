import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** What operators watch; one registry per process, served on METRICS_ADDR. Names are public: dashboards and rules use them. */
export interface Metrics {
  readonly registry: Registry;
  /** Missed deadlines of accepted work, once each. */
  readonly overdueWork: Counter<'rule'>;
  /** Compensations that were refused: something is left behind. */
  readonly failedUndo: Counter<'step'>;
  /** Other things an operator should look at. */
  readonly operatorAlerts: Counter<'action'>;
  /** Audit chains whose hashes do not fit. */
  readonly auditChainBroken: Counter;
  /** Starts of workflows by who did them and how they ended. */
  readonly operationStarts: Counter<'by' | 'result'>;
  /** Accepted work Temporal has not been told of. */
  readonly operationsUndispatched: Gauge;
  readonly operationsUndispatchedAgeSeconds: Gauge;
  /** Answers 401 and 403 of a mail provider: it refuses us, and all live mail waits. */
  readonly mailTransportRefusals: Counter<'transport'>;
  /** Postgres services by status, and those whose server did not say how it is when last asked. */
  readonly postgresServices: Gauge<'status'>;
  readonly postgresSilent: Gauge;
  readonly httpRequestSeconds: Histogram<'operation' | 'method' | 'status'>;
}

/** `process` becomes the default label of every metric. */
export function createMetrics(process: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ process });
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    overdueWork: new Counter({ registers, name: 'overdue_work', help: 'Missed deadlines of accepted work', labelNames: ['rule'] }),
    failedUndo: new Counter({ registers, name: 'failed_undo', help: 'Compensations that were refused', labelNames: ['step'] }),
    operatorAlerts: new Counter({ registers, name: 'operator_alerts', help: 'Other things an operator should look at', labelNames: ['action'] }),
    auditChainBroken: new Counter({ registers, name: 'audit_chain_broken', help: 'Audit chains whose hashes do not fit' }),
    operationStarts: new Counter({ registers, name: 'operation_starts', help: 'Starts of workflows', labelNames: ['by', 'result'] }),
    operationsUndispatched: new Gauge({ registers, name: 'operations_undispatched', help: 'Accepted work Temporal was not told of' }),
    operationsUndispatchedAgeSeconds: new Gauge({ registers, name: 'operations_undispatched_age_seconds', help: 'Age of the oldest of it' }),
    mailTransportRefusals: new Counter({ registers, name: 'mail_transport_refusals', help: 'Refusals of our credentials by the mail provider', labelNames: ['transport'] }),
    postgresServices: new Gauge({ registers, name: 'postgres_services', help: 'Postgres services by status', labelNames: ['status'] }),
    postgresSilent: new Gauge({ registers, name: 'postgres_silent_services', help: 'Postgres services whose server did not answer when last asked' }),
    httpRequestSeconds: new Histogram({
      registers, name: 'http_request_seconds', help: 'Requests by operation', labelNames: ['operation', 'method', 'status'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    }),
  };
}

import { Context, heartbeat } from '@temporalio/activity';
import {
  adopt, beginOrder, checkCaa, failOrder, loadOrder, maintain, obtain, removeProofs, reportUsage, retire, sweepCertificates,
  type CertificateDeps, type CertificateRun, type OrderDeps, type OrderFailure,
} from '../src/gateway/service';

export type GatewayActivityDeps = OrderDeps & CertificateDeps;
export type GatewayActivities = ReturnType<typeof createGatewayActivities>;

const beatMs = 5_000;

/** Activities on the queue `gateway`. Every one is safe twice and gives way to a newer generation. */
export function createGatewayActivities(deps: GatewayActivityDeps) {
  return {
    /** Whether the name is still served. Errors: `certificate_not_served`. */
    loadCertificateOrder: (run: CertificateRun) => loadOrder(deps, run),
    markIssuing: (run: CertificateRun) => beginOrder(deps, run),
    /** Errors: `certificate_caa_forbids`. */
    checkCaa: (run: CertificateRun) => checkCaa(deps, run),
    /** Key, order, proofs and chain in one: no secret leaves it. Errors: `certificate_rejected`. */
    obtainCertificate: (run: CertificateRun) => beating(() => obtain(deps, run, Context.current().cancellationSignal)),
    markValid: (run: CertificateRun) => adopt(deps, run),
    removeChallenge: (run: CertificateRun) => removeProofs(deps, run),
    /** Settles the order as failed, or as cancelled by an operator; what served serves on. */
    markFailed: ({ failure, ...run }: CertificateRun & { failure: OrderFailure }) => failOrder(deps, run, failure),
    markRetired: (run: CertificateRun) => retire(deps, run),

    /** What is due is ordered, what has ended is expired, what serves nobody is retired. */
    listDueCertificates: () => sweepCertificates(deps, () => heartbeat()),
    maintainGatewayTables: () => maintain(deps, () => heartbeat()),
    reportGatewayRequests: () => reportUsage(deps, () => heartbeat()),
  };
}

async function beating<T>(work: () => Promise<T>): Promise<T> {
  const beat = setInterval(() => heartbeat(), beatMs);
  try {
    return await work();
  } finally {
    clearInterval(beat);
  }
}

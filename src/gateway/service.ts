/** What the processes and activities call of the gateway's control plane. */
export { ensureZoneCertificates, sweepCertificates, type CertificateDeps } from './certificates';
export { adopt, beginOrder, checkCaa, failOrder, loadOrder, obtain, removeProofs, retire, type CertificateRun, type OrderDeps, type OrderFailure } from './certificate-orders';
export { watchCertificates } from './certificate-watch';
export { maintain, reportUsage } from './maintenance';
export type { GatewayDeps } from './deps';
export { loadRuleFacts } from './rule-catalogue';

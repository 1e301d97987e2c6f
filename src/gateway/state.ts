/** Statuses of a gateway certificate (contract gateway.md §2). The only product file workflows import. */
export const certificateStatuses = ['requested', 'issuing', 'valid', 'renewing', 'failed', 'expired', 'retired'] as const;
export type CertificateStatus = (typeof certificateStatuses)[number];

/** Every change is a compare-and-set along one of these. An expired one goes on being ordered; a valid one that is due becomes renewing. */
export const certificateTransitions = {
  requested: ['issuing', 'failed', 'retired'],
  issuing: ['valid', 'failed', 'retired'],
  valid: ['renewing', 'expired', 'retired'],
  renewing: ['valid', 'expired', 'retired'],
  failed: ['issuing', 'retired'],
  expired: ['issuing', 'retired'],
  retired: [],
} as const satisfies Record<CertificateStatus, readonly CertificateStatus[]>;

/** What an order makes of a certificate's status while it lasts. */
export function underway(status: CertificateStatus): 'issuing' | 'renewing' | null {
  switch (status) {
    case 'valid': case 'renewing': return 'renewing';
    case 'requested': case 'issuing': case 'failed': case 'expired': return 'issuing';
    case 'retired': return null;
  }
}

const hourMs = 3_600_000;

/** Pause before another order after this many that failed: 1, 2, 4 … 24 h. */
export function backoffMs(attempts: number): number {
  return Math.min(24, 2 ** Math.max(0, attempts - 1)) * hourMs;
}

/** A third of its life before it ends. */
export function renewalAt(notBefore: Date, notAfter: Date): Date {
  return new Date(notAfter.getTime() - (notAfter.getTime() - notBefore.getTime()) / 3);
}

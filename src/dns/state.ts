/** Statuses of zones and records, their transitions and the times of checks (contract dns.md §2). Pure: workflows import this file. */

export const zoneStatuses = ['pending', 'active', 'degraded', 'moved'] as const;
export type ZoneStatus = (typeof zoneStatuses)[number];
/** What a client sees: `deleted` and `suspended` are flags of the row that hide the stored status. */
export const shownZoneStatuses = [...zoneStatuses, 'suspended', 'deleted'] as const;
export type ShownZoneStatus = (typeof shownZoneStatuses)[number];

/** Changes of the stored status. */
export const zoneTransitions = {
  pending: ['active', 'degraded'],
  active: ['degraded', 'moved', 'pending'],
  degraded: ['active', 'moved', 'pending'],
  moved: ['active', 'degraded', 'pending'],
} as const satisfies Record<ZoneStatus, readonly ZoneStatus[]>;

export const statusReasons = [
  'awaiting_nameservers', 'awaiting_txt', 'domain_not_registered', 'foreign_nameservers', 'nameservers_missing', 'parent_inconsistent',
  'custom_nameservers_unproven', 'custom_nameservers_wrong_address', 'claimed_elsewhere', 'server_lame', 'server_unreachable', 'stale_ds',
  'cname_missing', 'txt_missing', 'delegated_elsewhere', 'unverified', 'billing', 'operator',
] as const;
export type StatusReason = (typeof statusReasons)[number];

export type CheckResult = 'verified' | 'not_verified' | 'inconclusive';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const pendingLadderMs = [1, 2, 5, 10, 20, 30].map((minutes) => minutes * minuteMs);
/** Conclusive misses in a row, and the time they must span, that make a live zone `moved`. */
const missesToMove = 3;
const missesSpanMs = hourMs;

/** Deleted hides suspended, suspended hides the stored status. */
export function shownZoneStatus(zone: { status: ZoneStatus; suspendedAt: Date | null; deletedAt: Date | null }): ShownZoneStatus {
  return zone.deletedAt ? 'deleted' : zone.suspendedAt ? 'suspended' : zone.status;
}

/** Our answers and the gateway's routes are meant for these. */
export function isLive(status: ZoneStatus): boolean {
  return status !== 'pending';
}

export type CheckFacts = {
  status: ZoneStatus;
  result: CheckResult;
  /** A problem that degrades; server problems only when this is their second check in a row. */
  degrading: boolean;
  /** Another claim on the name has been proven. */
  claimedElsewhere: boolean;
  /** Conclusive misses in a row, this one included, and when the first was. */
  misses: number;
  firstMissAt: Date | null;
  now: Date;
};

/** Status after a check; the same one when nothing changes. Inconclusive checks change nothing. */
export function statusAfterCheck(facts: CheckFacts): ZoneStatus {
  const { status, result, degrading } = facts;
  if (result === 'inconclusive') return status;
  if (result === 'verified') return facts.claimedElsewhere && !isHolding(status) ? status : degrading ? 'degraded' : 'active';
  if (!isHolding(status)) return status;
  const spanMs = facts.firstMissAt ? facts.now.getTime() - facts.firstMissAt.getTime() : 0;
  if (facts.claimedElsewhere || (facts.misses >= missesToMove && spanMs >= missesSpanMs)) return 'moved';
  return degrading ? 'degraded' : status;
}

export type LadderFacts = {
  status: ZoneStatus;
  result: CheckResult;
  /** Checks since the ladder was (re)started by creation, restore or POST verify, this one included. */
  attempt: number;
  startedAt: Date;
  /** Conclusive checks in a row, this one included, that found something wrong; and that were inconclusive. */
  failures: number;
  inconclusives: number;
  now: Date;
  /** 0 to 1: spreads the checks of live zones. */
  random: number;
};

/**
 * Milliseconds from this check to the next (contract dns.md §2.2). Pending: 1, 2, 5, 10, 20, 30 min after the first checks
 * of the ladder, then hourly until a day after its start, then every 6 h. Live: 12 h ± 10 %, after failures 15 min three
 * times, then hourly. Inconclusive: 5 min three times, then as without it.
 */
export function nextCheckDelayMs(facts: LadderFacts): number {
  if (facts.result === 'inconclusive' && facts.inconclusives <= 3) return 5 * minuteMs;
  if (facts.status === 'pending') return pendingDelayMs(facts.attempt, facts.now.getTime() - facts.startedAt.getTime());
  if (facts.failures === 0) return Math.round(12 * hourMs * (0.9 + 0.2 * facts.random));
  const tries = facts.failures + (facts.result === 'inconclusive' ? facts.inconclusives - 3 : 0);
  return tries <= 3 ? 15 * minuteMs : hourMs;
}

/** The first wait of a new ladder. */
export const firstCheckDelayMs = pendingLadderMs[0] ?? minuteMs;

/** Whether a pending zone ends as `unverified`: unproven for long enough, and a conclusive no within the last week. */
export function isExpired(zone: { pendingSince: Date; lastConclusiveNoAt: Date | null }, pendingDays: number, now: Date): boolean {
  const age = now.getTime() - zone.pendingSince.getTime();
  const sinceNo = zone.lastConclusiveNoAt ? now.getTime() - zone.lastConclusiveNoAt.getTime() : Infinity;
  return age >= pendingDays * dayMs && sinceNo <= 7 * dayMs;
}

/** Whether a zone has been delegated elsewhere for so long that it ends. */
export function hasMovedFor(zone: { status: ZoneStatus; movedAt: Date | null }, movedDays: number, now: Date): boolean {
  return zone.status === 'moved' && zone.movedAt !== null && now.getTime() - zone.movedAt.getTime() >= movedDays * dayMs;
}

function pendingDelayMs(attempt: number, elapsedMs: number): number {
  return pendingLadderMs[attempt - 1] ?? (elapsedMs < dayMs ? hourMs : 6 * hourMs);
}

/** Only the holder of a name is degraded or moved by misses. */
function isHolding(status: ZoneStatus): boolean {
  return status === 'active' || status === 'degraded';
}

import type { DnsDeps } from './deps';
import type { Problem, Report } from './report';
import { statusReasons, type CheckResult, type StatusReason } from './state';
import type { ZoneRow } from './store/zones';

export type CheckDeps = Pick<DnsDeps, 'db' | 'dnsPlatform' | 'dnsResolver' | 'clock'>;

/** What a check says of a claim; nothing is written yet. */
export type Check = {
  report: Omit<Report, 'cached' | 'nextCheckAt'>;
  result: CheckResult;
  reason: StatusReason | null;
  /** Problems that degrade a live zone at once, and those of servers, which must be seen twice. */
  degrading: boolean; serverProblems: boolean;
  /** A conclusive answer in which nothing of ours was found. */
  miss: boolean;
  /** The delegation leads to our addresses and does not prove this claim. */
  misdelegated: boolean;
  /** Whoever made the claim has shown that the domain is theirs, also when its delegation is not ours yet. */
  provenNow: boolean;
  seenNameservers: string[];
  /** External: the last proxied name looked at. */
  cnameCursor: string | null;
};

/** What the two modes find; when and how long is added by checkZone. */
export type CheckFacts = Omit<Check, 'report'> & { report: Omit<Check['report'], 'checkedAt' | 'durationMs' | 'result'> };

/** Who is responsible is asked first, then what they say: with the 3 s of a server's two attempts, 8 s in all. */
export const askMs = 4_500;
export const followMs = 3_000;

export function unregistered(zone: Pick<ZoneRow, 'domain'>): Problem {
  return problem('domain_not_registered', 'critical', `${zone.domain} does not exist in DNS.`, 'Register the domain, or correct its spelling.');
}

export function problem(code: StatusReason, severity: Problem['severity'], message: string, fix: string): Problem {
  return { code, severity, message, fix };
}

/** The code of the weightiest problem; null when nothing is wrong. */
export function reasonOf(problems: readonly Problem[]): StatusReason | null {
  const first = problems.find(({ severity }) => severity !== 'info');
  return statusReasons.find((reason) => reason === first?.code) ?? null;
}

import type { Outcome, Source } from '../ports';
import { bucketsOf, type Window } from './buckets';

export const countedOutcomes = ['clean', 'allow', 'log', 'monitor', 'challenge', 'challenge_passed', 'challenge_failed', 'rate_limit', 'block'] as const satisfies readonly (Outcome | 'clean')[];
export const eventOutcomes = ['block', 'rate_limit', 'challenge', 'challenge_failed', 'challenge_passed', 'monitor', 'log', 'allow'] as const satisfies readonly Outcome[];
export const eventSources = ['managed', 'custom', 'rate_limit', 'ip_list', 'geo', 'bot', 'challenge', 'transport', 'protocol', 'engine'] as const satisfies readonly Source[];

/** Requests of one outcome and source in one bucket; `source` is '' for clean ones. */
export type Count = { bucket: number; outcome: string; source: string; requests: number };
export type Counts = {
  requests: number; clean: number; allowed: number; logged: number; monitored: number; challenged: number; challengePassed: number; challengeFailed: number;
  rateLimited: number; blocked: number;
};
const memberOf = {
  clean: 'clean', allow: 'allowed', log: 'logged', monitor: 'monitored', challenge: 'challenged', challenge_passed: 'challengePassed', challenge_failed: 'challengeFailed',
  rate_limit: 'rateLimited', block: 'blocked',
} as const satisfies Record<(typeof countedOutcomes)[number], keyof Counts>;

export type SummaryCounts = {
  totals: Counts & { events: number };
  byAction: Record<(typeof eventOutcomes)[number], number>;
  bySource: Record<(typeof eventSources)[number], number>;
  series: (Counts & { start: string; end: string })[];
};

/**
 * Counts as the summary shows them. Whatever is counted: requests are the sum of the other nine, every total is its sum over
 * the series, and byAction and bySource each sum to `events` (contract gateway.md §1.3).
 */
export function summarise(window: Window, counts: readonly Count[]): SummaryCounts {
  const series = bucketsOf(window).map(({ startMs, endMs }) => ({ start: new Date(startMs).toISOString(), end: new Date(endMs).toISOString(), ...noCounts() }));
  const totals = noCounts();
  const byAction = { block: 0, rate_limit: 0, challenge: 0, challenge_failed: 0, challenge_passed: 0, monitor: 0, log: 0, allow: 0 };
  const bySource = { managed: 0, custom: 0, rate_limit: 0, ip_list: 0, geo: 0, bot: 0, challenge: 0, transport: 0, protocol: 0, engine: 0 };
  for (const { bucket, outcome, source, requests } of counts) {
    const entry = series[bucket];
    const counted = countedOutcomes.find((known) => known === outcome);
    if (!entry || !counted) continue;
    for (const counters of [entry, totals]) add(counters, memberOf[counted], requests);
    if (counted === 'clean') continue;
    byAction[counted] += requests;
    bySource[eventSources.find((known) => known === source) ?? 'engine'] += requests;
  }
  return { totals: { ...totals, events: totals.requests - totals.clean }, byAction, bySource, series };
}

function add(counters: Counts, member: keyof Counts, requests: number): void {
  counters.requests += requests;
  counters[member] += requests;
}

function noCounts(): Counts {
  return { requests: 0, clean: 0, allowed: 0, logged: 0, monitored: 0, challenged: 0, challengePassed: 0, challengeFailed: 0, rateLimited: 0, blocked: 0 };
}

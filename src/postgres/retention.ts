import type { Plan } from './rules';

/** How long things of a plan last (contract postgres.md §2, §8). */
export type Lifetimes = { trialDays: number | null; undeleteHours: number; backupDays: number };

export const lifetimes: Readonly<Record<Plan, Lifetimes>> = {
  trial: { trialDays: 14, undeleteHours: 24, backupDays: 0 },
  starter: { trialDays: null, undeleteHours: 168, backupDays: 3 },
  launch: { trialDays: null, undeleteHours: 168, backupDays: 7 },
  growth: { trialDays: null, undeleteHours: 168, backupDays: 14 },
  business: { trialDays: null, undeleteHours: 168, backupDays: 30 },
};

/** Major versions a backend can make, newest first. */
export const versions = ['18'] as const;

/** Days a backup is kept, by plan; 0: the plan has none. */
export const backupDaysOf: Readonly<Record<Plan, number>> = {
  trial: lifetimes.trial.backupDays, starter: lifetimes.starter.backupDays, launch: lifetimes.launch.backupDays, growth: lifetimes.growth.backupDays, business: lifetimes.business.backupDays,
};

import { ActivityCancellationType, type ActivityOptions, type LocalActivityOptions } from '@temporalio/workflow';

/**
 * How long activities may take and how they are tried again. They are recorded in histories, but changing a number is
 * safe for running workflows. A cancellation waits for the activity that runs: it takes effect at the next boundary.
 */
const cancellationType = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED;
const quick = { initialInterval: '100ms', backoffCoefficient: 2, maximumInterval: '5s' } as const;

/** A step that must end within `seconds`, attempts and pauses together; then the job fails with `deadline_exceeded`. */
export function within(seconds: number): ActivityOptions {
  return { startToCloseTimeout: `${seconds}s`, scheduleToCloseTimeout: `${seconds}s`, retry: quick, cancellationType };
}

/** The same for a step that takes more than ten seconds and heartbeats: a dead worker is noticed after 15 s. */
export function withinBeating(seconds: number): ActivityOptions {
  return { ...within(seconds), heartbeatTimeout: '15s' };
}

/** One short attempt inside the worker that runs the workflow; whoever uses it has an ordinary activity to fall back on. */
export function locallyWithin(seconds: number): LocalActivityOptions {
  return { startToCloseTimeout: `${seconds}s`, scheduleToCloseTimeout: `${seconds}s`, retry: { maximumAttempts: 1 }, cancellationType };
}

/** Copies a database beside everything else: an hour an attempt, six in all; a dead worker is noticed after 10 s. */
export const copying: ActivityOptions = {
  startToCloseTimeout: '1h', scheduleToCloseTimeout: '6h', heartbeatTimeout: '10s', cancellationType,
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '30s' },
};

/** The same for a copy somebody waits for, which must end within `seconds`. */
export function copyingWithin(seconds: number): ActivityOptions {
  return { ...within(seconds), startToCloseTimeout: '1h', heartbeatTimeout: '15s' };
}

/** Writes what has become true of a row. Tried without end: the world has changed and the row must say so. */
export const marking: ActivityOptions = {
  startToCloseTimeout: '10s', retry: { initialInterval: '200ms', backoffCoefficient: 2, maximumInterval: '10s' }, cancellationType,
};

/** Deletes and compensations: forward only, tried without end; reconcile raises the alert when one is overdue. */
export const withoutEnd: ActivityOptions = {
  startToCloseTimeout: '60s', retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' }, cancellationType,
};

/** Housekeeping of the platform: pages through many rows, heartbeats with each. */
export const housekeeping: ActivityOptions = {
  startToCloseTimeout: '4m', scheduleToCloseTimeout: '4m', heartbeatTimeout: '30s', cancellationType,
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '30s' },
};

/** Hands something to a provider: 30 s, then twice that up to ten minutes, for a day. */
export const delivering: ActivityOptions = {
  startToCloseTimeout: '60s', scheduleToCloseTimeout: '24h', retry: { initialInterval: '30s', backoffCoefficient: 2, maximumInterval: '10m' }, cancellationType,
};

/** Waits by being tried again, up to a minute apart, without end; what is not there yet is no fault. */
export const polling: ActivityOptions = {
  startToCloseTimeout: '60s', retry: { initialInterval: '500ms', backoffCoefficient: 1.5, maximumInterval: '60s' }, cancellationType,
};

/** Asks others' name servers: what does not end in three attempts is asked again at another time. */
export const checking: ActivityOptions = {
  startToCloseTimeout: '20s', scheduleToCloseTimeout: '90s', retry: { initialInterval: '2s', backoffCoefficient: 2, maximumAttempts: 3 }, cancellationType,
};

/** Removes what was deleted long ago: nobody waits for it. What does not succeed in a day is begun anew by reconcile. */
export const purging: ActivityOptions = {
  startToCloseTimeout: '1m', scheduleToCloseTimeout: '24h', retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '5m' }, cancellationType,
};

/** Pages through what is too old, once a day; heartbeats with each page. */
export const retaining: ActivityOptions = {
  startToCloseTimeout: '10m', scheduleToCloseTimeout: '10m', heartbeatTimeout: '30s', retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '30s' }, cancellationType,
};

/** Waits for our own servers or a provider's to take a zone: attempts up to two minutes apart, for an hour. */
export const publishing: ActivityOptions = {
  startToCloseTimeout: '30s', scheduleToCloseTimeout: '1h', heartbeatTimeout: '10s', retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '2m' }, cancellationType,
};

/** Checks of a sender domain: not verified yet is a result; what fails is tried for an hour. */
export const domainChecking: ActivityOptions = {
  startToCloseTimeout: '30s', scheduleToCloseTimeout: '1h', retry: { initialInterval: '2s', backoffCoefficient: 2, maximumInterval: '5m' }, cancellationType,
};

/** Many of them, from a schedule: heartbeats with every few, and is over before the next run. */
export const rechecking: ActivityOptions = {
  startToCloseTimeout: '5m', scheduleToCloseTimeout: '10m', heartbeatTimeout: '30s', retry: { initialInterval: '2s', backoffCoefficient: 2, maximumInterval: '5m' }, cancellationType,
};

/** Forward only through pages of mail, heartbeats with each; tried without end. */
export const paging: ActivityOptions = {
  startToCloseTimeout: '5m', heartbeatTimeout: '30s', retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '5m' }, cancellationType,
};

/** Tries recipients of messages: rows guard against double work, so a lost attempt may be made again by anybody. */
export const attempting: ActivityOptions = {
  startToCloseTimeout: '10m', heartbeatTimeout: '30s', scheduleToCloseTimeout: '1h', retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '60s' }, cancellationType,
};

/** A step on a certificate's row: short attempts, for ten minutes at most. */
export const certificateStep: ActivityOptions = {
  startToCloseTimeout: '5s', scheduleToCloseTimeout: '10m', retry: { initialInterval: '2s', backoffCoefficient: 2, maximumInterval: '5m' }, cancellationType,
};

/** Asks DNS which authorities a domain allows. */
export const caaChecking: ActivityOptions = { ...certificateStep, startToCloseTimeout: '10s' };

/** One order at a certificate authority: five minutes an attempt, half an hour in all. */
export const ordering: ActivityOptions = {
  startToCloseTimeout: '5m', scheduleToCloseTimeout: '30m', heartbeatTimeout: '30s', retry: { initialInterval: '2s', backoffCoefficient: 2, maximumInterval: '5m' }, cancellationType,
};

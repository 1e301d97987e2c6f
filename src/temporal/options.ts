/**
 * Every number that decides how we talk to Temporal, in one place. Timeouts and retries of activities are the workflows'
 * own (workflows/policies.ts): they are part of recorded histories.
 */

/** A start from a request: two attempts, and an answer within `deadlineMs` also when the server is a black hole. */
export const startOptions = {
  attemptsMax: 2,
  retryAfterMs: 50,
  deadlineMs: 800,
  /** Starts in flight per process; beyond it the relay does them, so a burst cannot queue ten seconds inside Temporal. */
  inFlightMax: 32,
} as const;

/** grpc-js alone waits up to two minutes before it tries a refused address again; work should start soon after a restart. */
export const channelOptions = {
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.keepalive_permit_without_calls': 1,
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 15_000,
} as const;

export const workerOptions = {
  shutdownGraceTime: '25s',
  maxCachedWorkflows: 300,
  /** Per queue. Twice the database connections of a process: activities wait for backends more than for rows. */
  maxConcurrentActivityTaskExecutions: 40,
  maxConcurrentLocalActivityExecutions: 40,
  workflowTaskPollerBehavior: { type: 'autoscaling', minimum: 2, initial: 2, maximum: 20 },
  activityTaskPollerBehavior: { type: 'autoscaling', minimum: 1, initial: 2, maximum: 20 },
} as const;

/**
 * Catch-up: what was missed in a longer outage is not repeated; the next run sees all that is overdue anyway. A run that hangs
 * would keep all later ones from starting (overlap SKIP): it is ended after `runTimeout`.
 */
export const scheduleOptions = { catchupWindow: '10 minutes', runTimeout: '1 hour' } as const;

export const deploymentName = 'holdfast';

export const queues = ['postgres', 'mail', 'mail-delivery', 'dns', 'gateway', 'billing', 'system'] as const;
export type Queue = (typeof queues)[number];

/** Queues work is started on today: a worker costs 35 MB of memory per queue, so it polls no other. A start elsewhere does not compile. */
export const queuesInUse = ['postgres', 'mail', 'mail-delivery', 'dns', 'gateway', 'billing', 'system'] as const satisfies readonly Queue[];
export type QueueInUse = (typeof queuesInUse)[number];

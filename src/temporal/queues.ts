export const queues = ['postgres', 'mail', 'mail-delivery', 'dns', 'gateway', 'billing', 'system'] as const;
export type Queue = (typeof queues)[number];

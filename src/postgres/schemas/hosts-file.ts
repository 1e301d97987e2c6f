import { z } from 'zod';

/** One entry of PG_HOSTS_FILE: a PostgreSQL server an operator has prepared (contract postgres.md §6.3). */
const registeredServer = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9.-]{0,62}$/),
  region: z.string().regex(/^[a-z0-9-]{1,40}$/),
  dsn: z.string().regex(/^postgres(?:ql)?:\/\/\S+$/, 'must be a postgresql:// URL'),
  capacityBytes: z.number().int().positive(),
  maxServices: z.number().int().min(1).default(500),
  publicHost: z.string().min(1).max(253),
  publicPort: z.number().int().min(1).max(65_535).default(5432),
  sslmode: z.enum(['verify-full', 'require']).default('verify-full'),
  caFile: z.string().optional(),
});
export type RegisteredServer = z.output<typeof registeredServer>;

export const hostsFile = z.array(registeredServer).refine((list) => new Set(list.map(({ name }) => name)).size === list.length, 'must not name a server twice');

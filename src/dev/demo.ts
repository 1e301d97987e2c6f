import { join } from 'node:path';
import { z } from 'zod';
import type { AskDemo } from './demo-api';
import { changeDelegations, readDelegations, registryFile } from './registry/delegations';

/** The zone that the demo project begins with, and the domain it sends mail from. */
export const demoDomain = 'demo.test';
const zoneShape = z.object({ id: z.string(), domain: z.string(), nameservers: z.array(z.string()) });

/**
 * At the first start with a registry the demo project hosts `demo.test`, the registry delegates it, and a check finds it active.
 * Later starts leave both as they are. Errors: the API refuses; the next start tries again.
 */
export async function hostDemoZone(ask: AskDemo, dir: string): Promise<void> {
  const file = join(dir, registryFile);
  if (await readDelegations(file)) return;
  const found = z.object({ zones: z.array(zoneShape) }).parse(await ask('GET', `/dns/zones?search=${demoDomain}`)).zones.find(({ domain }) => domain === demoDomain);
  const zone = found ?? z.object({ zone: zoneShape }).parse(await ask('POST', '/dns/zones', { domain: demoDomain, mode: 'full_hosting' })).zone;
  await changeDelegations(file, (present) => [...present.filter(({ domain }) => domain !== demoDomain), { domain: demoDomain, names: zone.nameservers, glue: {}, ds: [] }]);
  await ask('POST', `/dns/zones/${zone.id}/verify`);
}

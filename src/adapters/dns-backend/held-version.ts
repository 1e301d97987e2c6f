import type { ZoneChangeSet } from '../../dns/ports';

/** Which claim's zone a backend has, and its version; version 0: one that nobody has pushed. */
export type Held = { zoneId: string | null; version: number };

/**
 * What is to be done with a change set where `held` is: the zone is to be taken, or things are as they should be. A step that
 * starts elsewhere, and an older version, are `ignored`: the answer then tells the version that is held.
 */
export function decideStep(held: Held | null, { zoneId, version, fromVersion, kind }: ZoneChangeSet): 'take' | 'done' | 'ignored' {
  const own = held !== null && held.zoneId === zoneId ? held : null;
  if (own && own.version > version) return 'ignored';
  if (kind === 'remove') return held === null || (!own && held.zoneId !== null) ? 'done' : 'take';
  if (kind === 'full') return 'take';
  if (own?.version === version) return 'done';
  return own?.version === fromVersion ? 'take' : 'ignored';
}

/** The version of this claim's zone that is held; 0: none. */
export function versionHeld(held: Held | null, zoneId: ZoneChangeSet['zoneId']): number {
  return held?.zoneId === zoneId ? held.version : 0;
}

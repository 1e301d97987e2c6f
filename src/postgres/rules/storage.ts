import type { StorageState } from '../state';

/** Shares of the plan's storage at which something changes (contract postgres.md §4.5). */
export const storageShares = { warning: 0.8, recovered: 0.9, notice: 0.9, readOnly: 0.95, restricted: 1 } as const;

/**
 * How full a service is. Read-only and restricted end below 90 % alone, so a service on the edge does not flutter; between
 * 95 % and 100 % a restricted one stays restricted. Contract postgres.md §4.5.
 */
export function storageState(usedBytes: number, limitBytes: number, previous: StorageState): StorageState {
  const share = usedBytes / limitBytes;
  if (share >= storageShares.restricted) return 'restricted';
  if (share >= storageShares.recovered && (previous === 'restricted' || previous === 'read_only')) return previous;
  if (share >= storageShares.readOnly) return 'read_only';
  return share >= storageShares.warning ? 'warning' : 'ok';
}

/** What a storage state lets a customer do. */
export function modeOfStorage(state: StorageState): 'full' | 'read_only' | 'restricted' {
  return state === 'read_only' || state === 'restricted' ? state : 'full';
}

/** The state a mode in force stands for, for the next judgement; a warning makes no difference to it. */
export function storageOfMode(mode: 'full' | 'read_only' | 'restricted' | 'blocked'): StorageState {
  return mode === 'read_only' || mode === 'restricted' ? mode : 'ok';
}

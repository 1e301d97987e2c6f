import { dirname } from 'node:path';
import { mkdir } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { readFileIfAny, replaceFile } from '../../core/files';
import { claimFile } from '../claims';

const delegated = z.strictObject({ domain: z.string(), names: z.array(z.string()), glue: z.record(z.string(), z.array(z.string())), ds: z.array(z.string()) });
const shape = z.strictObject({ serial: z.number().int().positive(), delegations: z.array(delegated) });

/** Name of the file in the data folder. */
export const registryFile = 'registry.json';

/** A delegation as the registry holds it: `glue` addresses of name servers inside the domain, `ds` values of a signed one. */
export type Delegated = z.infer<typeof delegated>;
/** `serial`: goes up by one with every change; the SOA of `test` shows it. */
export type Delegations = z.infer<typeof shape>;

/** What is delegated, in a file of the data folder; null before the first change. Errors: the file is not one of ours. */
export async function readDelegations(file: string): Promise<Delegations | null> {
  const text = await readFileIfAny(file);
  if (text === null) return null;
  try {
    return shape.parse(JSON.parse(text));
  } catch (error) {
    throw new Error(`${file} is damaged; delete it to begin with an empty registry.`, { cause: error });
  }
}

/**
 * One change at a time, whoever makes it; the file has the old content or the new. Null from `change`: nothing is
 * written. Resolves with what stands there now.
 */
export async function changeDelegations(file: string, change: (present: readonly Delegated[]) => Delegated[] | null): Promise<Delegations> {
  await mkdir(dirname(file), { recursive: true });
  const release = await claimTurn(`${file}.lock`);
  try {
    const present = await readDelegations(file) ?? { serial: 1, delegations: [] };
    const delegations = change(present.delegations);
    if (delegations === null) return present;
    const changed = { serial: present.serial + 1, delegations: delegations.toSorted((a, b) => (a.domain < b.domain ? -1 : 1)) };
    await replaceFile(file, `${JSON.stringify(changed, null, 2)}\n`);
    return changed;
  } finally {
    await release();
  }
}

async function claimTurn(lock: string): Promise<() => Promise<void>> {
  for (let tries = 0; ; tries++) {
    const claim = await claimFile(lock);
    if (claim.claimed) return claim.release;
    if (tries > 200) throw new Error(`Process ${claim.ownerPid} does not finish its change of the registry (${lock}).`);
    await pause(25);
  }
}

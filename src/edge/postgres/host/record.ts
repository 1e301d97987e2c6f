import { join } from 'node:path';
import { z } from 'zod';
import { readFileIfAny, replaceFile } from '../../../core/files';
import { accessModes, plans } from '../../../postgres/rules';

const schema = z.object({
  serviceId: z.string().nullable(),
  /** Null while a directory is prepared for whatever plan comes. */
  plan: z.enum(plans).nullable(),
  slot: z.number().int(),
  /** Null until initdb has finished: such a directory is thrown away, never repaired. */
  systemId: z.string().nullable(),
  generation: z.number().int(),
  mode: z.enum(accessModes),
  /** False while the server has not been told of `mode`: a start, or the guard, does it before anybody is let in. */
  settled: z.boolean().default(true),
  /** Stopped by intent: nobody's connection wakes it. */
  stopped: z.boolean(),
  /** Of an instance that was made from a backup: which, and until when. */
  restored: z.object({ backupId: z.string(), targetTime: z.string().nullable(), reachedTime: z.string().nullable() }).nullable().default(null),
  /** When a member of the running pool was last logged in to, as a customer would. */
  provenAt: z.string().nullable(),
});
export type InstanceRecord = z.infer<typeof schema>;

/** Null for a directory without a record, in which nothing was begun. Errors: a record that cannot be understood. */
export async function readRecord(directory: string): Promise<InstanceRecord | null> {
  const text = await readFileIfAny(join(directory, 'instance.json'));
  return text === null ? null : schema.parse(JSON.parse(text));
}

export function writeRecord(directory: string, record: InstanceRecord): Promise<void> {
  return replaceFile(join(directory, 'instance.json'), `${JSON.stringify(record)}\n`);
}

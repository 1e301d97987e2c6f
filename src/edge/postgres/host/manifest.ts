import { join } from 'node:path';
import { z } from 'zod';
import { AppError } from '../../../core/errors';
import { readFileIfAny, replaceFile } from '../../../core/files';
import { plans } from '../../../postgres/rules';

/** What a base backup consists of, beside its data: nothing is restored that is not exactly this. */
const schema = z.object({
  backupId: z.string(),
  serviceId: z.string(),
  /** pg_control's system identifier. */
  systemId: z.string(),
  plan: z.enum(plans),
  /** From this second on any time can be reached; RFC 3339. */
  from: z.string(),
  /** Archived segments from this one on are needed. */
  firstSegment: z.string().regex(/^[0-9A-F]{24}$/),
  sizeBytes: z.number(),
  directories: z.array(z.string()),
  files: z.array(z.object({ path: z.string(), bytes: z.number(), sha256: z.string() })),
});
export type Manifest = z.infer<typeof schema>;

/** Null: there is no such backup. Errors: `restore_unavailable` for one that cannot be understood. */
export async function readManifest(directory: string): Promise<Manifest | null> {
  const text = await readFileIfAny(join(directory, 'manifest.json'));
  if (text === null) return null;
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new AppError('restore_unavailable', 'The backup cannot be read.', {}, { cause: error });
  }
}

export function writeManifest(directory: string, manifest: Manifest): Promise<void> {
  return replaceFile(join(directory, 'manifest.json'), JSON.stringify(manifest));
}

import { z } from 'zod';
import { displayName, time } from '../../core/fields';
import { pageAnswer, pageQuery } from '../../core/page';
import { operationSchema } from '../../operations/view';
import { plans } from '../rules';
import { backupKinds, backupStatuses } from '../state';

export const backupSchema = z.object({
  id: z.string(),
  serviceId: z.string(),
  kind: z.enum(backupKinds).meta({ description: 'final: what a deletion has retained.' }),
  status: z.enum(backupStatuses),
  sizeBytes: z.number().int().nullable(),
  createdAt: time,
  updatedAt: time,
  startedAt: time,
  completedAt: time.nullable(),
  expiresAt: time.nullable().meta({ description: 'Not before a later backup reaches back over the whole window of the plan.' }),
  restoreFrom: time.nullable(),
  restoreUntil: time.nullable(),
  verifiedAt: time.nullable().meta({ description: 'When it was last restored in full to prove that it can be.' }),
}).meta({ id: 'PostgresBackup' });
export type BackupView = z.infer<typeof backupSchema>;

export const restoreServiceBody = z.strictObject({
  targetTime: z.iso.datetime({ offset: true }).optional().meta({ description: 'From earliestRestoreTime to latestRestoreTime; default: the latest.' }),
  backupId: z.string().max(40).optional().meta({ description: 'The service as this backup has it, instead of a time.' }),
  displayName: displayName.optional().meta({ description: 'Default: the name of the source with " (restored)".' }),
  plan: z.enum(plans).optional().meta({ description: 'Default: the plan of the source.' }),
}).refine((body) => body.targetTime === undefined || body.backupId === undefined, { path: ['backupId'], message: 'goes without targetTime' });
export type RestoreService = z.output<typeof restoreServiceBody>;

export const listBackupsQuery = z.object(pageQuery);
export const listBackupsAnswer = z.object({ backups: z.array(backupSchema), ...pageAnswer });
export const backupAcceptedAnswer = z.object({ backup: backupSchema, operation: operationSchema });

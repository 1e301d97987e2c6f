import { z } from 'zod';
import { roles } from '../core/caller';
import { displayName, text, time } from '../core/fields';
import { pageQuery } from '../core/page';
import { canonicalEmail, isReservedSlug, passwordFault, slugPattern } from './rules';

export const email = text.transform(canonicalEmail).pipe(z.email('must be an email address').max(254, 'must be at most 254 characters'))
  .meta({ description: 'Email address; trimmed and lower-cased.' });
/** A password that is to be checked: only bounded, so that a refusal says nothing about it. */
export const password = z.string().min(1, 'must not be empty').max(1_000, 'must be at most 1000 characters');
/** A password that is to be set. */
export const newPassword = text.superRefine((value, context) => {
  const fault = passwordFault(value);
  if (fault) context.addIssue({ code: 'custom', message: fault });
}).meta({ description: '8 to 128 characters; not a common one, not the email address, not the name.' });
export const token = z.string().min(1, 'must not be empty').max(200, 'must be at most 200 characters');
export const slug = z.string().regex(slugPattern, 'must be 1 to 40 of a-z, 0-9 and single dashes inside').refine((value) => !isReservedSlug(value), 'is a reserved word')
  .meta({ description: 'Address of the organisation or project: 1 to 40 of a-z, 0-9 and single dashes inside.' });
export const role = z.enum(roles);
export const timeZone = z.string().max(60).refine(isTimeZone, 'must be an IANA time zone such as Europe/Berlin');

function isTimeZone(name: string): boolean {
  if (!/^(UTC|[A-Za-z_]+(\/[A-Za-z0-9_+-]+)+)$/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone.length > 0;
  } catch {
    return false;
  }
}

/** With `password` beside `email` and `displayName`: it must not be one of them. */
export function withOwnPassword<S extends z.ZodType<{ email: string; displayName: string; password: string }>>(schema: S) {
  return schema.superRefine((body, context) => {
    const fault = passwordFault(body.password, body);
    if (fault && !passwordFault(body.password)) context.addIssue({ code: 'custom', path: ['password'], message: fault });
  });
}

const stamps = { createdAt: time, updatedAt: time };

export const userSchema = z.object({
  id: z.string(), email: z.string(), displayName: z.string(), emailVerified: z.boolean(), disabledAt: time.nullable(), ...stamps,
}).meta({ id: 'User' });

export const sessionSchema = z.object({
  id: z.string(), current: z.boolean(), lastSeenAt: time.meta({ description: 'To the hour.' }),
  expiresAt: time.meta({ description: 'When it ends if it is not used.' }), endsAt: time.meta({ description: 'When it ends in any case.' }),
  freshUntil: time.nullable().meta({ description: 'Until when it may reveal and delete without the password.' }),
  ip: z.string().nullable(), userAgent: z.string().nullable(), ...stamps,
}).meta({ id: 'Session' });

export const membershipSchema = z.object({ orgId: z.string(), orgSlug: z.string(), displayName: z.string(), role }).meta({ id: 'Membership' });

const lifeStatus = z.enum(['active', 'deleting']);

export const orgSchema = z.object({
  id: z.string(), slug: z.string(), displayName: z.string(), timeZone: z.string().meta({ description: 'IANA; billing months follow it.' }),
  status: lifeStatus, role: role.meta({ description: "The caller's." }), ...stamps,
}).meta({ id: 'Org' });

export const projectSchema = z.object({
  id: z.string(), orgId: z.string(), slug: z.string(), displayName: z.string(), status: lifeStatus, ...stamps,
}).meta({ id: 'Project' });

export const memberSchema = z.object({
  id: z.string().meta({ description: "The user's id." }), email: z.string(), displayName: z.string(), role, ...stamps,
}).meta({ id: 'Member' });

export const invitationSchema = z.object({
  id: z.string(), email: z.string(), role, status: z.enum(['pending', 'accepted', 'revoked', 'expired']),
  invitedBy: z.object({ id: z.string(), displayName: z.string() }), expiresAt: time, acceptedAt: time.nullable(), ...stamps,
}).meta({ id: 'Invitation' });

export const auditEntrySchema = z.object({
  id: z.string(), seq: z.number().int().meta({ description: 'Counts from 1 within the organisation, without gaps.' }),
  actor: z.object({ kind: z.enum(['user', 'apiKey', 'system', 'anonymous']), id: z.string().nullable(), displayName: z.string().nullable() }),
  action: z.string().meta({ description: 'operationId of the request, or what the system did.' }), outcome: z.enum(['done', 'denied']),
  projectId: z.string().nullable(), target: z.object({ type: z.string(), id: z.string() }).nullable(),
  changes: z.array(z.object({ field: z.string(), from: z.unknown(), to: z.unknown() })),
  requestId: z.string().nullable(), ip: z.string().nullable(),
  prevHash: z.string(), hash: z.string().meta({ description: 'SHA-256 of prevHash and the canonical JSON of the other fields.' }), ...stamps,
}).meta({ id: 'AuditEntry' });

/** What a sign-in answers. */
export const signedIn = z.object({ user: userSchema, session: sessionSchema, memberships: z.array(membershipSchema) });
/** What a sign-up answers: the same, or only that the address must be verified first. */
export const signedUp = z.object({
  user: userSchema.nullable(), session: sessionSchema.optional(), memberships: z.array(membershipSchema).optional(),
  verificationRequired: z.literal(true).optional(),
});

export const nameAndSlug = z.strictObject({ displayName, slug: slug.optional() });

export const auditQuery = z.object({
  ...pageQuery, actorId: text.max(100).optional(), action: text.max(100).optional(), targetId: text.max(100).optional(),
  projectId: text.max(100).optional(), outcome: z.enum(['done', 'denied']).optional(),
  from: z.iso.datetime({ offset: true }).optional(), to: z.iso.datetime({ offset: true }).optional().meta({ description: 'Exclusive.' }),
});
export type AuditQuery = z.output<typeof auditQuery>;


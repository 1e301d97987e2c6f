import { z } from 'zod';
import { invalid } from '../../core/errors';
import { isId } from '../../core/ids';
import type { CanonicalEvent, Reply } from '../../mail/ports';
import { diagnosticOf, enhancedCodeOf } from '../../mail/rules/replies';

/** A time however the provider writes it; what is none counts as not given. */
export const moment = z.union([z.string(), z.number()]).transform((value) => {
  const at = new Date(typeof value === 'number' ? value * 1_000 : value);
  return Number.isNaN(at.getTime()) ? undefined : at;
}).optional().catch(undefined);

export const words = z.string().optional().catch(undefined);
export const number = z.coerce.number().int().optional().catch(undefined);

/** The body as this provider writes it. Errors: `validation_error`. */
export function readBody<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  const { success, data, error } = schema.safeParse(body);
  if (!success) throw invalid(error.issues.map((issue) => ({ path: issue.path.join('.'), message: issue.message })));
  return data;
}

/** Only what is there: members without a value are left out. */
export function eventOf(event: { [Name in keyof CanonicalEvent]: CanonicalEvent[Name] | undefined } & Pick<CanonicalEvent, 'providerEventId' | 'type'>): CanonicalEvent {
  const { providerEventId, type, ...rest } = event;
  return { providerEventId, type, ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)) };
}

/** What the receiving server said, from the provider's own fields; undefined when it said nothing. */
export function replyOf({ code, enhancedCode, text, mxHost }: { code?: number | undefined; enhancedCode?: string | undefined; text?: string | undefined; mxHost?: string | undefined }): Reply | undefined {
  const spoken = text ?? '';
  const enhanced = enhancedCodeOf(enhancedCode) ?? /(?:^|[\s(#-])([245]\.\d{1,3}\.\d{1,3})(?=[\s):;,-]|$)/.exec(spoken)?.[1];
  const said = code !== undefined && code >= 200 && code <= 599 ? code : Number(/^\s*([245]\d\d)[ -]/.exec(spoken)?.[1] ?? 0);
  const diagnostic = diagnosticOf(spoken);
  const reply = {
    ...(said > 0 ? { code: said } : {}), ...(enhanced ? { enhancedCode: enhanced } : {}), ...(diagnostic ? { text: diagnostic } : {}), ...(mxHost ? { mxHost } : {}),
  };
  return Object.keys(reply).length > 0 ? reply : undefined;
}

/** An id of ours that the provider repeats; anything else is none. */
export function messageIdOf(value: unknown): string | undefined {
  return isId('msg', value) ? value : undefined;
}

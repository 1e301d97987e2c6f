import type { BounceClass, Reply } from '../ports';

/** Enhanced status codes (RFC 3463) as `class.subject.detail`; null for what is none. */
export function enhancedCodeOf(text: string | null | undefined): string | null {
  return /^[245]\.\d{1,3}\.\d{1,3}$/.test(text ?? '') ? text ?? null : null;
}

const softCodes = /^\d\.(?:2\.[23]|3\.\d+|6\.\d+)$/;
const hardCodes = /^\d\.(?:1\.\d+|2\.\d+|5\.0)$/;

/** What a refusal for good says of the address (contract mail.md §4.5); 550, 551 and 553 count alone where no enhanced code is given. */
export function bounceClass({ code, enhancedCode }: Pick<Reply, 'code' | 'enhancedCode'>): BounceClass {
  const enhanced = enhancedCodeOf(enhancedCode);
  if (enhanced === null) return code === 550 || code === 551 || code === 553 ? 'hard' : 'undetermined';
  if (/^\d\.7\.\d+$/.test(enhanced)) return 'policy';
  if (softCodes.test(enhanced)) return 'soft';
  return hardCodes.test(enhanced) ? 'hard' : 'undetermined';
}

const hintMinSeconds = 30;
const hintMaxSeconds = 8 * 3_600;

/** A wait of 30 s to 8 h that a server asks for; null for none and for one out of these bounds. */
export function retryHintSeconds({ text, retryAfterSeconds }: { text?: string | undefined; retryAfterSeconds?: number | undefined }): number | null {
  const seconds = retryAfterSeconds ?? spokenHint(text ?? '');
  return seconds !== null && seconds >= hintMinSeconds && seconds <= hintMaxSeconds ? Math.ceil(seconds) : null;
}

/** "try again in 300 seconds", "retry in 5 minutes", "please try again after 00:04:58" (greylisting daemons). */
function spokenHint(text: string): number | null {
  const spoken = /\b(?:try again|retry|come back|resend|wait)\b\D{0,40}?(\d{1,6})\s*(s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)\b/i.exec(text);
  if (spoken) {
    const unit = spoken[2]?.charAt(0).toLowerCase();
    return Number(spoken[1]) * (unit === 's' ? 1 : unit === 'm' ? 60 : 3_600);
  }
  const clock = /\b(?:try again|retry|come back)\b\D{0,40}?(\d{1,2}):(\d{2}):(\d{2})\b/i.exec(text);
  return clock ? Number(clock[1]) * 3_600 + Number(clock[2]) * 60 + Number(clock[3]) : null;
}

const diagnosticMax = 500;

/** A server's words as we keep and show them: at most 500 characters on one line, without controls. */
export function diagnosticOf(text: string | null | undefined): string | null {
  const clean = (text ?? '').replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').toWellFormed().trim();
  return clean === '' ? null : clean.slice(0, diagnosticMax).toWellFormed();
}
